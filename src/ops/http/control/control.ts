// control.ts: changes over HTTP, on the control socket or by a user with the right to change. Entry file of
// this folder; each other file has the paths of one part of the gateway.
//
//   POST /control/reload     reads config and device table again
//   POST /control/probe      tries the service now
//   POST /control/...        control-alerts.ts, control-batches.ts, control-dead-letters.ts,
//                            control-devices.ts, control-quarantine.ts, control-spool.ts
//
// request-rights/ decides who may. The answer comes when the work is done, which may take minutes; closing
// the connection ends the work. A change is in the audit log before it begins and when it has ended; so is an
// export, because data leaves the gateway. A request with wrong parameters begins nothing.
//
// A page without scripts makes a change with a form (changeByForm).

import { GatewayError } from '../../../std/gateway-error.ts'
import { isoTimes } from '../../../std/iso-times.ts'
import { quote } from '../../../std/quote.ts'
import type { ChangeEnd } from '../../audit/audit.ts'
import { probeSchema, reloadSchema } from '../answer-schemas/control-schemas.ts'
import { badRequest, faultAnswer, ok, starting } from '../json-answer.ts'
import { noParameters, rawParametersIn, readParameters } from '../http-routing/parameters.ts'
import { parametersRefused } from '../http-routing/request-refusals.ts'
import type { Route, RouteAnswer, RouteRequest } from '../http-routing/route.ts'
import { alertRoutes } from './control-alerts.ts'
import { conditionRoutes } from './control-conditions.ts'
import { batchRoutes } from './control-batches.ts'
import { deadLetterRoutes } from './control-dead-letters.ts'
import { deviceRoutes } from './control-devices.ts'
import { quarantineRoutes } from './control-quarantine.ts'
import { controlRoute, type ControlRoute } from './control-route.ts'
import { idsBody, idsOf } from './ids-in-body.ts'
import { spoolRoutes } from './control-spool.ts'

const prefix = '/control/'

const own: readonly ControlRoute[] = [
  controlRoute({
    name: 'reload',
    summary: 'Reads the config and the device table again.',
    parameters: noParameters,
    answers: {
      200: { means: 'They are in force.', schema: reloadSchema },
    },
    async answer(_, { reload }) {
      const report = await reload('by request')
      return report.kind === 'refused' ? faultAnswer(422, report.fault) : ok(report)
    },
  }),
  controlRoute({
    name: 'probe',
    summary: 'Tries at once what waits for a back-off or a slow probe.',
    parameters: noParameters,
    answers: { 200: { means: 'The state after the try.', schema: probeSchema } },
    async answer({ signal }, { probe }) {
      const { now, providers } = await probe(signal)
      // Named as in /status.
      const shown = providers.map(({ ratePerS, ...one }) => ({ ...one, payloadsPerSecond: ratePerS }))
      return ok(isoTimes({ now, providers: shown }))
    },
  }),
]

const changes: readonly ControlRoute[] = [
  ...own,
  ...deadLetterRoutes,
  ...deviceRoutes,
  ...quarantineRoutes,
  ...batchRoutes,
  ...spoolRoutes,
  ...alertRoutes,
  ...conditionRoutes,
]

export const controlRoutes: readonly Route[] = changes.map(toRoute)

function toRoute({ name, shows = false, idsInBody = false, ...of }: ControlRoute): Route {
  const change = { name, ...of }
  return {
    ...of,
    method: 'POST',
    path: `${prefix}${name}`,
    right: shows ? 'show' : 'change',
    ...(idsInBody && { body: idsBody }),
    atOnce: true,
    async answer(request) {
      const query = queryText(request.request.url ?? '')
      if (!idsInBody) return answerControl(change, request, query)
      const more = await idsOf(request.request)
      if ('status' in more) return more
      const values = request.values as { id: readonly string[] }
      const all = { ...request, values: { ...values, id: [...values.id, ...more] } }
      return answerControl(change, all, [query, ...more.map((id) => `id=${id}`)].filter(Boolean).join('&'))
    },
  }
}

/** Fields of a form that are no parameters of the change. */
const ownFields = new Set(['token', 'change', 'sure', 'body'])

/**
 * The change `name` with the fields of a form as its parameters, as POST /control/NAME makes it. Only for
 * routes with the right `change`, whose form was checked. The field `body` is the body of a change that takes
 * one.
 */
export async function changeByForm(request: RouteRequest<unknown>, name: string): Promise<RouteAnswer> {
  const change = changes.find((one) => one.name === name)
  if (change === undefined || change.shows === true)
    return badRequest(`There is no change ${quote(name, 60)} for forms.`, 'Use one of /control.')
  const given = new URLSearchParams([...request.form].filter(([field]) => !ownFields.has(field)))
  const read = readParameters(change.parameters, rawParametersIn(given.toString()))
  if (read.kind === 'invalid') return parametersRefused(read.problems)
  // What it would do may be asked with GET, which has no token; so it must change nothing.
  if (request.request.method !== 'POST' && isRecorded(change, read.values as Values))
    return badRequest(`${quote(name, 60)} changes something.`, 'Send the form of the page.')
  const sentBody = request.form.get('body') ?? ''
  return answerControl(change, { ...request, values: read.values, sentBody }, parametersText(given))
}

async function answerControl(
  route: Omit<ControlRoute, 'summary' | 'answers' | 'body' | 'shows'>,
  request: RouteRequest<unknown>,
  /** For the audit log. */
  parameters: string,
): Promise<RouteAnswer> {
  const { control } = request.source.stages
  if (!control && !route.alwaysPossible) return starting('Nothing can be changed yet.')
  // The time limits of the server are for requests that only read.
  request.request.socket.setTimeout(0)
  const run = async () => {
    try {
      return await route.answer(request, control!)
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      return faultAnswer(wrongUse.has(error.code) ? 422 : 503, error)
    }
  }
  if (!isRecorded(route, request.values as Values)) return run()
  const end = await request.audit.begin(route.name, parameters, request.caller)
  return ended(run, end)
}

type Values = { dryRun?: boolean; yes?: boolean }

/** Changes that take `yes` only report without it. */
function isRecorded(
  { changesNothing = false }: { changesNothing?: boolean },
  { dryRun, yes }: Values,
): boolean {
  return !changesNothing && dryRun !== true && yes !== false
}

/** The request is wrong, and would be again. */
const wrongUse: ReadonlySet<string> = new Set([
  'DEAD_LETTER_INVALID',
  'SPOOL_ENTRY_GONE',
  'IMPORT_ENDED',
  'LANE_KNOWN',
  'OUTPUT_UNWRITABLE',
])

/** Calls `end` when the change, or the stream that it answers with, has ended. */
async function ended(
  run: () => Promise<RouteAnswer>,
  end: (how: ChangeEnd) => Promise<void>,
): Promise<RouteAnswer> {
  try {
    const answered = await run()
    if (typeof answered !== 'string' && 'lines' in answered)
      return { lines: counted(answered.lines, (lines) => end({ status: 200, value: { lines } })) }
    await end(answered as ChangeEnd)
    return answered
  } catch (error) {
    await end({ status: 500, value: { why: String(error) } })
    throw error
  }
}

async function* counted(
  lines: AsyncIterable<string>,
  end: (lines: number) => Promise<void>,
): AsyncGenerator<string> {
  let count = 0
  try {
    for await (const line of lines) {
      yield line
      count += 1
    }
  } finally {
    await end(count)
  }
}

function queryText(url: string): string {
  const [, query = ''] = url.split('?', 2)
  return parametersText(new URLSearchParams(query))
}

function parametersText(parameters: URLSearchParams): string {
  return [...parameters].map(([key, value]) => `${key}=${value}`).join('&')
}
