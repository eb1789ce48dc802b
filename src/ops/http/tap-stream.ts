// tap-stream.ts: GET /tap: messages as they come, raw and mapped, as newline-delimited JSON.
//
//   ?device=  ?topic=FILTER  ?source=     what is shown; all of it without them
//
//   {"kind":"message","at":1750000000000,"topic":"...","qos":1,"retain":false,"dup":false,"client":"..","user":null,
//    "certificate":null,"message":"{...}","source":"trucks","became":"payloads","payloads":[{...}]}
//   {"kind":"closed","at":...,"payloads":[{...}]}      made of messages that waited
//   {"kind":"dropped","count":12}                      more came than a tap shows
//   {"kind":"alive"}                                   every few seconds, so that both sides see the other go
//
// Bytes that are no text stand in `hex` instead of `message`. Nothing of the config is shown, and of a client its
// names only. It ends when the reader goes, does not read (http.ts cuts it), or the daemon stops.

import { isUtf8 } from 'node:buffer'
import type { ServerResponse } from 'node:http'
import type { CancelTimer, Clock } from '../../std/clock.ts'
import type { TapEntry, TapFilter, Taps } from '../../ingest/ingest.ts'

export const tapContentType = 'application/x-ndjson; charset=utf-8'

type Problem = { status: number; what: string; why: string; act: string }

/** Payloads of one message that are shown. */
const payloadsMax = 20
const aliveEveryMs = 4000
const questions = ['device', 'topic', 'source'] as const

export type TapRoute = (query: URLSearchParams, response: ServerResponse) => Problem | null

type Deps = { clock: Clock; taps: () => Pick<Taps, 'open'> | null }

/** The route answers by itself, or says why it does not. */
export function createTapRoute({ clock, taps }: Deps): TapRoute {
  return (query, response) => {
    const filter = filterIn(query)
    if ('status' in filter) return filter
    const source = taps()
    if (source === null)
      return problem(503, 'There are no messages to look at.', 'The daemon is starting.', 'Ask again.')
    let wake = () => {}
    const opened = source.open(filter, () => wake())
    if (opened.kind === 'full')
      return problem(
        503,
        'Too many look on already.',
        `There are ${opened.tapsMax} taps, the most that the daemon serves.`,
        'End one of them.',
      )
    if (opened.kind === 'malformed')
      return problem(
        400,
        'The topic filter is none.',
        `It ${opened.why}.`,
        'Write it as telemetry/v1/+/data.',
      )
    response.writeHead(200, {
      'content-type': tapContentType,
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      connection: 'close',
    })
    response.flushHeaders()
    wake = stream({ clock, response, reader: opened.reader })
    return null
  }
}

type Stream = {
  clock: Clock
  response: ServerResponse
  reader: { take(): TapEntry[]; takeDropped(): number; close(): void }
}

/** Ends with the response. What it gives is to be called when there is something to take. */
function stream({ clock, response, reader }: Stream): () => void {
  let cancel: CancelTimer = () => {}
  let scheduled = false
  let blocked = false
  response.on('drain', () => {
    blocked = false
    schedule()
  })
  response.once('close', () => {
    cancel()
    reader.close()
  })
  // A reader that resets the connection is gone like any other.
  response.on('error', () => response.destroy())
  beat()
  return schedule

  function schedule(): void {
    if (scheduled) return
    scheduled = true
    // Not on the intake's time.
    setImmediate(flush)
  }

  function flush(): void {
    scheduled = false
    if (blocked || response.destroyed) return
    let text = ''
    for (const entry of reader.take()) text += `${lineOf(entry)}\n`
    const dropped = reader.takeDropped()
    if (dropped > 0) text += `{"kind":"dropped","count":${dropped}}\n`
    if (text !== '') write(text)
  }

  function beat(): void {
    cancel = clock.after(aliveEveryMs, beat)
    if (!blocked) {
      write('{"kind":"alive"}\n')
      schedule()
    }
  }

  function write(text: string): void {
    blocked = !response.write(text)
  }
}

function filterIn(query: URLSearchParams): TapFilter | Problem {
  for (const key of query.keys())
    if (!questions.some((known) => known === key))
      return problem(
        400,
        'The question is not understood.',
        `There is no ${key}.`,
        'Ask by device, topic, source.',
      )
  const [device, topic, source] = questions.map((name) => query.get(name))
  return { device: device ?? null, topic: topic ?? null, source: source ?? null }
}

function problem(status: number, what: string, why: string, act: string): Problem {
  return { status, what, why, act }
}

function lineOf(entry: TapEntry): string {
  if (entry.kind === 'closed') return `{"kind":"closed","at":${entry.at},${payloadsText(entry.payloads)}}`
  const { topic, bytes, cutBytes, qos, retain, dup, sender, arrivedAt, result } = entry
  const shown = {
    kind: 'message',
    at: arrivedAt,
    topic,
    qos,
    retain,
    dup,
    client: sender.clientId,
    user: sender.userName,
    certificate: sender.certificateName,
    ...contentOf(bytes, cutBytes),
    source: result.source,
    became: result.kind,
  }
  const head = JSON.stringify(shown).slice(0, -1)
  switch (result.kind) {
    case 'payloads':
      return `${head},${payloadsText(result.payloads)}}`
    case 'ignored':
      return `${head},"reason":${JSON.stringify(result.reason)}}`
    case 'quarantined':
    case 'unmappable': {
      const { reason, detail, device } = result
      return `${head},${JSON.stringify({ reason, detail, device }).slice(1)}`
    }
    case 'part':
    case 'deferred':
    default:
      return `${head}}`
  }
}

/** As text where it is one. Text that was cut may end within a character. */
function contentOf(bytes: Buffer, cutBytes: number): Record<string, unknown> {
  const cut = cutBytes === 0 ? {} : { cutBytes }
  for (let less = 0; less <= (cutBytes === 0 ? 0 : 3); less += 1) {
    const part = bytes.subarray(0, bytes.length - less)
    if (isUtf8(part)) return { message: part.toString(), ...cut }
  }
  return { hex: bytes.toString('hex'), ...cut }
}

function payloadsText(payloads: readonly { json: string }[]): string {
  const texts = payloads.slice(0, payloadsMax).map(({ json }) => json)
  const more = payloads.length - texts.length
  return `"payloads":[${texts.join(',')}]${more > 0 ? `,"morePayloads":${more}` : ''}`
}
