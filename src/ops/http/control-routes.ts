// control-routes.ts: changes over HTTP, on the control socket or by a user with the right to change.
//
//   POST /control/reload                                              reads config and device table again
//   POST /control/probe                                               tries the service now
//   POST /control/dead-letters/remap?dryRun=1&reason=R&source=S       maps dead letters again
//   POST /control/dead-letters/...                                    control-dead-letters.ts
//   POST /control/devices/forget?device=KEY&signal=TYPE&ledger=1      control-devices.ts
//   POST /control/quarantine/...                                      control-quarantine.ts
//   POST /control/batches/...                                         control-batches.ts
//   POST /control/spool/verify                                        reads every record of the spool
//   POST /control/spool/...                                           control-spool.ts
//
// request-rights/ decides who may. The answer comes when the work is done, which may take minutes; closing
// the connection ends the work. A change is in the audit log before it begins and when it has ended; so is an
// export, because data leaves the gateway.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { GatewayError } from '../../std/gateway-error.ts'
import { quote } from '../../std/quote.ts'
import type { Audit, ChangeEnd } from '../audit/audit.ts'
import type { Caller, DaemonControl, StageViews } from '../types.ts'
import type { Right } from './request-rights/request-rights.ts'
import { changeBatches } from './control-batches.ts'
import { changeDeadLetters } from './control-dead-letters.ts'
import { changeQuarantine } from './control-quarantine.ts'
import { forgetDevice } from './control-devices.ts'
import { changeSpool } from './control-spool.ts'
import { badRequest, faultAnswer, notYet, ok, problem, type JsonAnswer } from './json-answer.ts'

/** One value as JSON, or lines that are sent while they are made. */
export type ControlAnswer = JsonAnswer | { lines: AsyncIterable<string> }

const prefix = '/control/'

export function isControl(path: string): boolean {
  return path.startsWith(prefix)
}

/** These show one dead letter or batch, or all selected ones, whole. */
const shown = /^\/control\/(dead-letters\/(show|export)|batches\/show)$/
/** These change nothing. */
const reading = /^\/control\/(dead-letters\/(show|import-plan|import-check)|batches\/show|spool\/verify)$/
/** These only report without `yes=1`. */
const confirmed =
  /^\/control\/(dead-letters\/purge|quarantine\/drop|batches\/(reissue|split|mark-delivered|drop))$/

export function rightFor(path: string): Right {
  return shown.test(path) ? 'show' : 'change'
}

function isRecorded(path: string, query: URLSearchParams): boolean {
  if (reading.test(path) || query.get('dryRun') === '1') return false
  return !confirmed.test(path) || query.get('yes') === '1'
}

type Route = {
  path: string
  query: URLSearchParams
  request: IncomingMessage
  response: ServerResponse
  caller: Caller
}

export async function answerControl(
  { stages, audit }: { stages: StageViews; audit: Audit },
  route: Route,
): Promise<ControlAnswer> {
  const { path, query, request, response, caller } = route
  const { control } = stages
  if (!control) return notYet('Nothing can be changed yet.')
  // The time limits of the server are for requests that only read.
  request.socket.setTimeout(0)
  const closed = new AbortController()
  response.once('close', () => closed.abort())
  const run = async () => (await tryChange(stages, control, route, closed.signal)) ?? unknownPath(path)
  if (!isRecorded(path, query)) return run()
  const end = await audit.begin(path.slice(prefix.length), decodeQuery(query), caller)
  return ended(run, end)
}

/** Calls `end` when the change, or the stream that it answers with, has ended. */
async function ended(
  run: () => Promise<ControlAnswer>,
  end: (how: ChangeEnd) => Promise<void>,
): Promise<ControlAnswer> {
  try {
    const answered = await run()
    if (!('lines' in answered)) {
      await end(answered)
      return answered
    }
    return { lines: counted(answered.lines, (lines) => end({ status: 200, value: { lines } })) }
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

function decodeQuery(query: URLSearchParams): string {
  return [...query].map(([key, value]) => `${key}=${value}`).join('&')
}

async function tryChange(
  stages: StageViews,
  control: DaemonControl,
  route: Route,
  signal: AbortSignal,
): Promise<ControlAnswer | null> {
  try {
    return await change(stages, control, route, signal)
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return faultAnswer(wrongUse.has(error.code) ? 422 : 503, error)
  }
}

/** The request is wrong, and would be again. */
const wrongUse: ReadonlySet<string> = new Set([
  'DEAD_LETTER_INVALID',
  'SPOOL_ENTRY_GONE',
  'IMPORT_ENDED',
  'LANE_KNOWN',
  'OUTPUT_UNWRITABLE',
])

/** Null for an unknown path. */
async function change(
  { deadLetters, quarantine, batches, spoolWork, mapping, ledger }: StageViews,
  control: DaemonControl,
  { path, query, request, caller }: Route,
  signal: AbortSignal,
): Promise<ControlAnswer | null> {
  switch (path.slice(prefix.length)) {
    case 'reload': {
      const report = await control.reload('by request')
      return report.kind === 'refused' ? faultAnswer(422, report.fault) : ok(report)
    }
    case 'probe':
      return ok(await control.probe(signal))
    case 'dead-letters/remap':
      return remap(control, query, signal)
    case 'devices/forget':
      return forgetDevice({ mapping: mapping ?? null, ledger: ledger ?? null }, control, query, signal)
    case 'spool/verify':
      return ok(await control.check(signal))
    default: {
      const [, folder, name = ''] =
        /^\/control\/(dead-letters|quarantine|batches|spool)\/([\w-]+)$/.exec(path) ?? []
      if (folder === 'spool' && spoolWork)
        return changeSpool(spoolWork, name, { query, providers: batches?.providers ?? [] }, signal)
      if (folder === 'dead-letters' && deadLetters)
        return changeDeadLetters(deadLetters, name, query, { request, signal })
      if (folder === 'quarantine' && quarantine) return changeQuarantine(quarantine, name, query, signal)
      if (folder === 'batches' && batches)
        return changeBatches(batches, name, { params: query, caller }, signal)
      return null
    }
  }
}

function unknownPath(path: string): ControlAnswer {
  return problem(404, {
    what: `There is no control path ${quote(path, 100)}.`,
    why: 'The path does not exist.',
    act: 'Use a path such as /control/reload, /control/probe or /control/dead-letters/remap.',
  })
}

async function remap(
  control: DaemonControl,
  query: URLSearchParams,
  signal: AbortSignal,
): Promise<JsonAnswer> {
  const act = 'The parameters are dryRun, reason and source.'
  for (const key of query.keys())
    if (!['dryRun', 'reason', 'source'].includes(key))
      return badRequest(`Unknown parameter ${quote(key, 40)}.`, act)
  const dryRun = query.get('dryRun') ?? '0'
  if (dryRun !== '0' && dryRun !== '1')
    return badRequest(`dryRun must be 0 or 1, found ${quote(dryRun, 40)}.`, act)
  const request = { dryRun: dryRun === '1', reason: query.get('reason'), source: query.get('source') }
  return ok(await control.remap(request, signal))
}
