// control-routes.ts: changes over HTTP, for people and programs of this machine only.
//
//   POST /control/reload                                              reads config and device table again
//   POST /control/probe                                               tries the service now
//   POST /control/dead-letters/remap?dryRun=1&reason=R&source=S       maps dead letters again
//   POST /control/dead-letters/...                                    control-dead-letters.ts
//   POST /control/quarantine/...                                      control-quarantine.ts
//   POST /control/batches/...                                         control-batches.ts
//   POST /control/spool/verify                                        reads every record of the spool
//   POST /control/spool/...                                           control-spool.ts
//
// There is no password. The connection must come from loopback, name a loopback host, and not come from a web
// page (which sends `Origin`) or through a proxy that announces itself. A proxy in front of `ops.listen` must
// not pass /control on. The answer comes when the work is done, which may take minutes; closing the
// connection ends the work.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { GatewayError } from '../../std/gateway-error.ts'
import { quote } from '../../std/quote.ts'
import type { DaemonControl, StageViews } from '../types.ts'
import { changeBatches } from './control-batches.ts'
import { changeDeadLetters } from './control-dead-letters.ts'
import { changeQuarantine } from './control-quarantine.ts'
import { changeSpool } from './control-spool.ts'
import { badRequest, faultAnswer, notYet, ok, problem, type JsonAnswer } from './json-answer.ts'

/** One value as JSON, or lines that are sent while they are made. */
export type ControlAnswer = JsonAnswer | { lines: AsyncIterable<string> }

const prefix = '/control/'

export function isControl(path: string): boolean {
  return path.startsWith(prefix)
}

type Route = { path: string; query: URLSearchParams; request: IncomingMessage; response: ServerResponse }

export async function answerControl(stages: StageViews, route: Route): Promise<ControlAnswer> {
  const { path, request, response } = route
  const why = foreignIn(request)
  if (why !== null)
    return problem(403, {
      what: 'Only programs on the machine of the gateway may change something.',
      why,
      act: 'Send the request on the machine of the gateway, to the address of ops.listen.',
    })
  if (!stages.control) return notYet('Nothing can be changed yet.')
  // The time limits of http.ts are for requests that only read.
  request.socket.setTimeout(0)
  const closed = new AbortController()
  response.once('close', () => closed.abort())
  try {
    return (await change(stages, stages.control, route, closed.signal)) ?? unknownPath(path)
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
  { deadLetters, quarantine, batches, spoolWork }: StageViews,
  control: DaemonControl,
  { path, query, request }: Route,
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
      if (folder === 'batches' && batches) return changeBatches(batches, name, query, signal)
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

/** Why the request may come from elsewhere; null where it comes from this machine. */
function foreignIn({ socket, headers }: IncomingMessage): string | null {
  const peer = socket.remoteAddress ?? ''
  if (!/^(127\.|::1$|::ffff:127\.)/.test(peer)) return `The connection comes from ${quote(peer, 60)}.`
  const host = (headers.host ?? '').replace(/:\d+$/, '')
  if (!/^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(host))
    return `The request names the host ${quote(host, 100)}, which is not this machine.`
  if (headers.origin !== undefined) return 'The request comes from a web page.'
  for (const name of ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'])
    if (headers[name] !== undefined) return 'The request came through a proxy.'
  return null
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
