// control-spool.ts: what an operator does with the spool of the running daemon, over HTTP.
//
//   POST /control/spool/verify                          reads every record of the spool
//   POST /control/spool/snapshot?to=DIR                 writes a snapshot into DIR, an absolute path; over
//                                                       TCP only below `snapshots` beside the spool
//   POST /control/spool/assign-lane?lane=N&provider=P   gives a lane whose provider is lost to a provider

import { isAbsolute, normalize, sep } from 'node:path'
import { z } from 'zod'
import type { LaneId, ProviderName } from '../../../domain/ids.ts'
import { assignLaneSchema, verifySchema } from '../answer-schemas/control-schemas.ts'
import { unknownProvider } from '../batch-params.ts'
import { badParameter, ok, starting } from '../json-answer.ts'
import { noParameters, requiredInteger, requiredText } from '../http-routing/parameters.ts'
import { controlRoute, type ControlRoute } from './control-route.ts'

export const spoolRoutes: readonly ControlRoute[] = [
  controlRoute({
    name: 'spool/verify',
    summary: 'Reads every record of the spool.',
    changesNothing: true,
    parameters: noParameters,
    answers: { 200: { means: 'What was found.', schema: verifySchema } },
    answer: async ({ signal }, { check }) => ok(await check(signal)),
  }),
  controlRoute({
    name: 'spool/snapshot',
    summary: 'Writes a snapshot of the spool.',
    parameters: z.strictObject({ to: requiredText('Directory for it, an absolute path.') }),
    answers: { 200: { means: 'The snapshot.' } },
    async answer({ source, values: { to }, caller, signal }, { snapshotsFolder }) {
      const { spoolWork: spool } = source.stages
      if (!spool) return starting()
      if (!isAbsolute(to)) return badParameter('to must be an absolute path.', { parameter: 'to', found: to })
      // Who came over TCP has the rights of the daemon for no other file.
      if (caller.via === 'tcp' && !normalize(to).startsWith(`${snapshotsFolder}${sep}`))
        return badParameter(`Over TCP, to must be below ${snapshotsFolder}.`, { parameter: 'to', found: to })
      return ok(await spool.snapshot(to, signal))
    },
  }),
  controlRoute({
    name: 'spool/assign-lane',
    summary: 'Gives a lane whose provider is lost to a provider.',
    parameters: z.strictObject({
      lane: requiredInteger('Number of the lane.', { min: 1, max: 9_999_999_999 }),
      provider: requiredText('Provider that gets the lane.'),
    }),
    answers: { 200: { means: 'The lane and its payloads.', schema: assignLaneSchema } },
    async answer({ source, values: { lane, provider } }) {
      const { spoolWork: spool, batches } = source.stages
      if (!spool) return starting()
      const providers: readonly string[] = batches?.providers ?? []
      if (!providers.includes(provider)) return unknownProvider(provider, providers)
      const payloads = await spool.assignLane(lane as LaneId, provider as ProviderName)
      return ok({ lane, provider, payloads })
    },
  }),
]
