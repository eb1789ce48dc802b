// control.ts: what can be changed over HTTP, by people and programs of this machine alone.
//
//   POST /control/reload                                              reads config and device table again
//   POST /control/dead-letters/remap?dryRun=1&reason=R&source=S       maps dead letters again
//
// There is no password, so it must be clear who asks: the connection comes from loopback, to a loopback name, and not
// from a web page (which sends `Origin`), nor through a proxy that says so. A proxy in front of `ops.listen` must not
// pass /control on. The answer comes when the work is done, which may take minutes; who hangs up ends it.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { GatewayError } from '../std/fault.ts'
import { quote } from '../std/quote.ts'
import type { Control } from './parts.ts'

export type ControlAnswer = { status: number; value: unknown }

type Words = { what: string; why: string; act: string }

const prefix = '/control/'

export function isControl(path: string): boolean {
  return path.startsWith(prefix)
}

export async function answerControl(
  control: Control | null,
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
      case 'dead-letters/remap':
        return await remap(control, query, gone.signal)
      default:
        return refused(404, {
          what: `There is nothing to do at ${quote(path, 100)}.`,
          why: 'The path is unknown.',
          act: 'There are /control/reload and /control/dead-letters/remap.',
        })
    }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return faulty(503, error)
  }
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

async function reload(control: Control): Promise<ControlAnswer> {
  const report = await control.reload('somebody asked')
  return report.kind === 'refused' ? faulty(422, report.fault) : { status: 200, value: report }
}

async function remap(control: Control, query: URLSearchParams, signal: AbortSignal): Promise<ControlAnswer> {
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
