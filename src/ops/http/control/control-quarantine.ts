// control-quarantine.ts: decisions about quarantined messages over HTTP.
//
//   POST /control/quarantine/release?device=&id=&all=1&restamp=1    device, id or both, or all=1
//   POST /control/quarantine/drop?device=&id=&all=1&reason=&yes=1   all=1 needs a reason; without `yes` a
//                                                                   report only
//
// Without a selection nothing is selected. `id` may stand more than once, or in the body: ids-in-body.ts.

import { z } from 'zod'
import { GatewayError } from '../../../std/gateway-error.ts'
import type { StageViews } from '../../types.ts'
import { dropSchema, releaseSchema } from '../answer-schemas/control-schemas.ts'
import { badRequest, faultAnswer, ok, starting } from '../json-answer.ts'
import { flag, text, texts } from '../http-routing/parameters.ts'
import type { HttpSource } from '../http-routing/route.ts'
import { controlRoute, type ControlAnswer, type ControlRoute } from './control-route.ts'

const which = {
  device: text('Only messages of this device.'),
  id: texts('Only this message. May be given more than once.'),
  all: flag('Selects all messages.'),
}

export const quarantineRoutes: readonly ControlRoute[] = [
  controlRoute({
    name: 'quarantine/release',
    idsInBody: true,
    summary: 'Maps quarantined messages as if they came now.',
    parameters: z.strictObject({
      ...which,
      restamp: flag('Gives them the time of their arrival instead of their own.'),
    }),
    answers: { 200: { means: 'What was released.', schema: releaseSchema } },
    answer: ({ source, values, signal }) =>
      decide(source, values, (quarantine) =>
        quarantine.release(selectionOf(values), { restamp: values.restamp }, signal),
      ),
  }),
  controlRoute({
    name: 'quarantine/drop',
    idsInBody: true,
    summary: 'Deletes quarantined messages.',
    parameters: z.strictObject({
      ...which,
      reason: text('Only messages with this reason.'),
      yes: flag('Does it. Without it, the answer reports what would be deleted.'),
    }),
    answers: { 200: { means: 'What was deleted, or would be.', schema: dropSchema } },
    answer({ source, values, signal }) {
      // A command for all messages says which kind it means.
      if (values.all && values.reason === undefined) return badRequest('all needs a reason.', act)
      const selection = {
        ...selectionOf(values),
        ...(values.reason !== undefined && { reason: values.reason }),
      }
      return decide(source, values, (quarantine) =>
        quarantine.drop(selection, { dryRun: !values.yes }, signal),
      )
    },
  }),
]

const act = 'Nothing was changed.'

type Which = { device?: string | undefined; id: readonly string[]; all: boolean }

function selectionOf({ device, id }: Which) {
  return { device: device ?? null, ids: id }
}

async function decide(
  { stages: { quarantine } }: HttpSource,
  { device, id, all }: Which,
  decision: (quarantine: NonNullable<StageViews['quarantine']>) => Promise<unknown>,
): Promise<ControlAnswer> {
  if (!quarantine) return starting()
  if (id.length > 0 && all) return badRequest('id and all exclude each other.', act)
  if (device === undefined && id.length === 0 && !all)
    return badRequest('The request selects no messages.', act)
  try {
    return ok(await decision(quarantine))
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'DAEMON_REFUSED') throw error
    return faultAnswer(422, error)
  }
}
