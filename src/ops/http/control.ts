// control.ts: what can be changed over HTTP, by people and programs of this machine alone.
//
//   POST /control/reload                                              reads config and device table again
//   POST /control/probe                                               tries the ingestion API now
//   POST /control/dead-letters/remap?dryRun=1&reason=R&source=S       maps dead letters again
//   POST /control/dead-letters/...                                    works with them: control-dead-letters.ts
//   POST /control/quarantine/...                                      judges what is kept: control-quarantine.ts
//   POST /control/spool/verify                                        walks over every record of the spool
//
// There is no password, so it must be clear who asks: the connection comes from loopback, to a loopback name, and not
// from a web page (which sends `Origin`), nor through a proxy that says so. A proxy in front of `ops.listen` must not
// pass /control on. The answer comes when the work is done, which may take minutes; who hangs up ends it.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { GatewayError } from '../../std/gateway-error.ts'
import { quote } from '../../std/quote.ts'
import { answerLetters } from './control-dead-letters.ts'
import { answerQuarantine } from './control-quarantine.ts'
import type { DaemonControl, StageViews } from '../types.ts'

/** One value as JSON, or lines that are sent while they are made. */
export type ControlAnswer = { status: number; value: unknown } | { status: 200; lines: AsyncIterable<string> }

type Words = { what: string; why: string; act: string }

const prefix = '/control/'

export function isControl(path: string): boolean {
  return path.startsWith(prefix)
}

export async function answerControl(
  {
    control = null,
    deadLetters: letters = null,
    quarantine: verdicts = null,
  }: Pick<StageViews, 'control' | 'deadLetters' | 'quarantine'>,
  { path, query }: { path: string; query: URLSearchParams },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<ControlAnswer> {
  const stranger = strangerIn(request)
  if (stranger !== null)
    return refused(403, {
      what: 'Only this machine may change something here.',
      why: stranger,
      act: 'Ask on the machine of the gateway, at the address of ops.listen.',
    })
  if (control === null)
    return refused(503, {
      what: 'Nothing can be changed yet.',
      why: 'The daemon is starting.',
      act: 'Ask again.',
    })
  // The limits of http.ts are for those who only ask.
  request.socket.setTimeout(0)
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  try {
    switch (path.slice(prefix.length)) {
      case 'reload':
        return await reload(control)
      case 'probe':
        return { status: 200, value: await control.probe(gone.signal) }
      case 'dead-letters/remap':
        return await remap(control, query, gone.signal)
      case 'spool/verify':
        return { status: 200, value: await control.check(gone.signal) }
      default: {
        const [, folder, name = ''] = /^\/control\/(dead-letters|quarantine)\/(\w+)$/.exec(path) ?? []
        const asked = { request, signal: gone.signal }
        if (folder === 'dead-letters' && letters !== null)
          return (await answerLetters(letters, name, query, asked)) ?? nothingAt(path)
        if (folder === 'quarantine' && verdicts !== null)
          return (await answerQuarantine(verdicts, name, query, gone.signal)) ?? nothingAt(path)
        return nothingAt(path)
      }
    }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return faulty(wrongUse.has(error.code) ? 422 : 503, error)
  }
}

/** What was asked for is wrong, and would be again. */
const wrongUse: ReadonlySet<string> = new Set(['DEAD_LETTER_INVALID', 'SPOOL_ENTRY_GONE'])

function nothingAt(path: string): ControlAnswer {
  return refused(404, {
    what: `There is nothing to do at ${quote(path, 100)}.`,
    why: 'The path is unknown.',
    act: 'There are /control/reload, /control/probe, /control/dead-letters/remap and others.',
  })
}

/** Why who asks may be somebody else; null where it is this machine. */
function strangerIn({ socket, headers }: IncomingMessage): string | null {
  const peer = socket.remoteAddress ?? ''
  if (!/^(127\.|::1$|::ffff:127\.)/.test(peer)) return `The connection comes from ${quote(peer, 60)}.`
  const host = (headers.host ?? '').replace(/:\d+$/, '')
  if (!/^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(host))
    return `The name that was asked is ${quote(host, 100)}, not one of this machine.`
  if (headers.origin !== undefined) return 'The request comes from a web page.'
  for (const name of ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'])
    if (headers[name] !== undefined) return 'The request came through a proxy.'
  return null
}

async function reload(control: DaemonControl): Promise<ControlAnswer> {
  const report = await control.reload('somebody asked')
  return report.kind === 'refused' ? faulty(422, report.fault) : { status: 200, value: report }
}

async function remap(
  control: DaemonControl,
  query: URLSearchParams,
  signal: AbortSignal,
): Promise<ControlAnswer> {
  for (const key of query.keys())
    if (!['dryRun', 'reason', 'source'].includes(key))
      return refused(400, {
        what: 'The request is not understood.',
        why: `There is no ${quote(key, 40)}.`,
        act: 'Ask with dryRun=1, reason and source.',
      })
  const dryRun = query.get('dryRun') ?? '0'
  if (dryRun !== '0' && dryRun !== '1')
    return refused(400, { what: 'dryRun is 0 or 1.', why: `Found ${quote(dryRun, 40)}.`, act: 'Say which.' })
  const request = { dryRun: dryRun === '1', reason: query.get('reason'), source: query.get('source') }
  return { status: 200, value: await control.remap(request, signal) }
}

function faulty(status: number, { code, what, why, act }: GatewayError): ControlAnswer {
  return { status, value: { code, what, why, act } }
}

function refused(status: number, words: Words): ControlAnswer {
  return { status, value: words }
}
