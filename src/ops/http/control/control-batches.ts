// control-batches.ts: what an operator does with sealed batches, over HTTP.
//
//   POST /control/batches/show?id=
//   POST /control/batches/retry?WHICH&dryRun=1
//   POST /control/batches/reissue?WHICH&yes=1
//   POST /control/batches/split?WHICH&parts=N&yes=1     without parts: a new batch for each payload
//   POST /control/batches/mark-delivered?WHICH&yes=1
//   POST /control/batches/drop?WHICH&discard=1&yes=1
//
// WHICH is id and reason (each more than once), provider, olderThanMs, or `all=1`. Without `yes` they report
// what they would do. Many ids may stand in the body: ids-in-body.ts.

import { z } from 'zod'
import { isoTimes } from '../../../std/iso-times.ts'
import type { BatchAction } from '../../../delivery/types.ts'
import type { Caller } from '../../types.ts'
import { batchSchema } from '../answer-schemas/answer-schemas.ts'
import { batchActionSchema } from '../answer-schemas/control-schemas.ts'
import { batchParameters, batchSelectionOf } from '../batch-params.ts'
import { badRequest, notFound, ok, starting } from '../json-answer.ts'
import { flag, integer, requiredText } from '../http-routing/parameters.ts'
import type { RouteRequest } from '../http-routing/route.ts'
import { controlRoute, type ControlAnswer, type ControlRoute } from './control-route.ts'

const act = 'Nothing was changed.'
const partsMax = 100_000

const which = { ...batchParameters, all: flag('Selects all held batches.') }
const dryRun = flag('Only reports what would be done.')
const yes = flag('Does it. Without it, the answer reports what would be done.')
const answers = { 200: { means: 'What was done, or would be.', schema: batchActionSchema } }

export const batchRoutes: readonly ControlRoute[] = [
  controlRoute({
    name: 'batches/show',
    summary: 'Shows one sealed batch.',
    shows: true,
    changesNothing: true,
    parameters: z.strictObject({ id: requiredText('Its batchId.') }),
    answers: { 200: { means: 'The batch.', schema: batchSchema } },
    async answer({ source, values: { id } }) {
      const { batches } = source.stages
      if (!batches) return starting()
      const detail = await batches.show(id)
      if (detail !== null) return ok(isoTimes(detail))
      const why = 'It was settled or replaced. `ledger --batch` shows what became of its payloads.'
      return notFound(`There is no sealed batch ${id}.`, why, act)
    },
  }),
  controlRoute({
    name: 'batches/retry',
    idsInBody: true,
    summary: 'Sends batches again under their batchId.',
    parameters: z.strictObject({ ...which, dryRun }),
    answers,
    answer: (request) => run('retry', request, { isDryRun: request.values.dryRun }),
  }),
  controlRoute({
    name: 'batches/reissue',
    idsInBody: true,
    summary: 'Sends the payloads of batches again under new batchIds.',
    parameters: z.strictObject({ ...which, dryRun, yes }),
    answers,
    answer: (request) => run('reissue', request, unlessConfirmed(request.values)),
  }),
  controlRoute({
    name: 'batches/split',
    idsInBody: true,
    summary: 'Splits batches into smaller ones with new batchIds.',
    parameters: z.strictObject({
      ...which,
      parts: integer('Number of batches to make of each. Without it, one for each payload.', {
        min: 2,
        max: partsMax,
      }),
      dryRun,
      yes,
    }),
    answers,
    answer: (request) =>
      run('split', request, { ...unlessConfirmed(request.values), parts: request.values.parts ?? null }),
  }),
  controlRoute({
    name: 'batches/mark-delivered',
    idsInBody: true,
    summary: 'Settles batches as delivered without sending them.',
    parameters: z.strictObject({ ...which, dryRun, yes }),
    answers,
    answer: (request) => run('mark-delivered', request, unlessConfirmed(request.values)),
  }),
  controlRoute({
    name: 'batches/drop',
    idsInBody: true,
    summary: 'Turns the payloads of batches into dead letters, or deletes them.',
    parameters: z.strictObject({
      ...which,
      discard: flag('Deletes the payloads instead of keeping them as dead letters.'),
      dryRun,
      yes,
    }),
    answers,
    answer: (request) =>
      run(request.values.discard ? 'discard' : 'drop', request, unlessConfirmed(request.values)),
  }),
]

type Selected = RouteRequest<Parameters<typeof batchSelectionOf>[0] & { all: boolean }>

function unlessConfirmed({ dryRun: dry, yes: confirmed }: { dryRun: boolean; yes: boolean }) {
  return { isDryRun: dry || !confirmed }
}

async function run(
  action: BatchAction,
  { source, values, caller, signal }: Selected,
  { isDryRun, parts = null }: { isDryRun: boolean; parts?: number | null },
): Promise<ControlAnswer> {
  const { batches } = source.stages
  if (!batches) return starting()
  const read = batchSelectionOf(values, batches.providers)
  if (read.kind === 'refused') return read.answer
  const { selection } = read
  if (Object.keys(selection).length === 0 && !values.all)
    return badRequest('The request selects no batches. all=1 selects all held batches.', act)
  const operator = operatorOf(caller)
  return ok(await batches.run({ action, selection, parts, dryRun: isDryRun, operator }, signal))
}

function operatorOf(caller: Caller) {
  const user = caller.user ?? 'unknown'
  return caller.via === 'socket'
    ? { user, sudoUser: caller.sudoUser }
    : { user: `${user} at ${caller.address} over TCP`, sudoUser: null }
}
