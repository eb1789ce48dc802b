// control.ts: the routes of the operations (../operations): GET for those that list, and POST /control/NAME.
//
// request-rights/ decides who may. The answer comes when the work is done, which may take minutes; closing
// the connection ends the work. A change is in the audit log before it begins and when it has ended; so is an
// export, because data leaves the gateway. A request with wrong parameters begins nothing.
//
// A page without scripts makes a change with a form (changeByForm).

import { z } from 'zod'
import { GatewayError } from '../../std/gateway-error.ts'
import { quote } from '../../std/quote.ts'
import type { ChangeEnd } from '../audit/audit.ts'
import { answerTo, effects, needsYes, refusedBy, type Operation } from '../operations/operation.ts'
import { operations } from '../operations/operations.ts'
import { metaOf, rawParametersIn, readParameters } from './http-routing/parameters.ts'
import { parametersRefused } from './http-routing/request-refusals.ts'
import type { Route, RouteAnswer, RouteRequest } from './http-routing/route.ts'
import { idsBody, idsOf } from './ids-in-body.ts'
import { badRequest, faultAnswer, starting } from './json-answer.ts'

export const operationRoutes: readonly Route[] = operations.map(toRoute)

function toRoute(of: Operation): Route {
  const { summary, parameters, means, schema, contentType, idsInBody = false } = of
  const body = idsInBody ? idsBody : of.body
  const shared = {
    summary,
    parameters,
    right: effects[of.effect].right,
    answers: { 200: { means, ...(schema && { schema }), ...(contentType && { contentType }) } },
    ...(body && { body }),
  }
  if (of.path !== undefined) {
    const inQuery = Object.entries(parameters.shape).filter(([, one]) => metaOf(one).form.isInPath !== true)
    return {
      ...shared,
      parameters: z.strictObject(Object.fromEntries(inQuery)),
      method: 'GET',
      path: of.path,
      answer: async (request) => refusedBy(of, request.values) ?? answerNow(of, request),
    }
  }
  return {
    ...shared,
    method: 'POST',
    path: `/control/${of.name}`,
    atOnce: true,
    async answer(request) {
      const query = queryText(request.request.url ?? '')
      if (!idsInBody) return answerControl(of, request, query)
      const more = await idsOf(request.request)
      if ('status' in more) return more
      const values = request.values as { id: readonly string[] }
      const all = { ...request, values: { ...values, id: [...values.id, ...more] } }
      return answerControl(of, all, [query, ...more.map((id) => `id=${id}`)].filter(Boolean).join('&'))
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
  const change = operations.find((one) => one.name === name)
  if (change === undefined || effects[change.effect].right !== 'change')
    return badRequest(`There is no change ${quote(name, 60)} for forms.`, 'Use one of /control.')
  const given = new URLSearchParams([...request.form].filter(([field]) => !ownFields.has(field)))
  const read = readParameters(change.parameters, rawParametersIn(given.toString()), request.source.ourNow())
  if (read.kind === 'invalid') return parametersRefused(read.problems)
  // What it would do may be asked with GET, which has no token; so it must change nothing.
  if (request.request.method !== 'POST' && isRecorded(change, read.values as Values))
    return badRequest(`${quote(name, 60)} changes something.`, 'Send the form of the page.')
  const sentBody = request.form.get('body') ?? ''
  return answerControl(change, { ...request, values: read.values, sentBody }, parametersText(given))
}

async function answerControl(
  of: Operation,
  request: RouteRequest<unknown>,
  /** For the audit log. */
  parameters: string,
): Promise<RouteAnswer> {
  const refused = refusedBy(of, request.values)
  if (refused !== null) return refused
  const { control } = request.source.stages
  if (!control && !of.alwaysPossible) return starting('Nothing can be changed yet.')
  // The time limits of the server are for requests that only read.
  request.request.socket.setTimeout(0)
  const run = async () => {
    try {
      return await answerNow(of, request)
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      return faultAnswer(wrongUse.has(error.code) ? 422 : 503, error)
    }
  }
  if (!isRecorded(of, request.values as Values)) return run()
  const end = await request.audit.begin(of.name, parameters, request.caller)
  return ended(run, end)
}

async function answerNow(of: Operation, request: RouteRequest<unknown>): Promise<RouteAnswer> {
  return (await answerTo(of, request)) ?? starting('Nothing can be changed yet.')
}

type Values = { dryRun?: boolean; yes?: boolean }

function isRecorded(of: Operation, { dryRun, yes }: Values): boolean {
  return effects[of.effect].isRecorded && dryRun !== true && (yes !== false || !needsYes(of))
}

/** The request is wrong, and would be again. */
const wrongUse: ReadonlySet<string> = new Set([
  'DEAD_LETTER_INVALID',
  'SPOOL_ENTRY_GONE',
  'IMPORT_ENDED',
  'LANE_KNOWN',
  'OUTPUT_UNWRITABLE',
  'DEVICE_LISTED',
  'DEVICES_INVALID',
  'USAGE',
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
