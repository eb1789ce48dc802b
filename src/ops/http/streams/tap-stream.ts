// tap-stream.ts: GET /tap: messages as they come, raw and mapped, as newline-delimited JSON.
//
//   ?device=  ?topic=FILTER  ?source=     what is shown; everything without them
//
//   {"kind":"message","at":"2026-01-02T03:04:05.678Z","topic":"...","qos":1,"retain":false,"dup":false,
//    "client":"..",
//    "user":null,"certificate":null,"identity":null,"message":"{...}","source":"trucks",
//    "result":"payloads","payloads":[{...}]}
//   {"kind":"closed","at":...,"payloads":[{...}]}      made of messages that waited
//   {"kind":"dropped","count":12}                      more arrived than a tap shows
//   {"kind":"alive"}                                   every 4 s, to detect a closed connection
//
// With `Accept: text/event-stream`, as EventSource sends it, the same objects as events without a name.
//
// Bytes that are not text are in `hex` instead of `message`. A message with properties of MQTT 5 has
// `userProperties` and `properties`, as an envelope. Nothing of the config is shown, and of a client
// only its names. The stream ends when the client closes it or stops reading (http.ts), with the session of
// its user, or when the daemon stops.

import { isUtf8 } from 'node:buffer'
import type { ServerResponse } from 'node:http'
import { every, isoTime, type Clock } from '../../../std/clock.ts'
import type { TapEntry, Taps } from '../../../ingest/ingest.ts'
import { problem, starting } from '../json-answer.ts'
import type { HttpSource } from '../http-routing/route.ts'
import type { Access } from '../request-rights/request-rights.ts'

export const tapContentType = 'application/x-ndjson; charset=utf-8'
export const eventStreamType = 'text/event-stream; charset=utf-8'

type Kept = NonNullable<Extract<TapEntry, { kind: 'message' }>['result']['rest']>[number]

/** Payloads of one message that are shown. */
const payloadsMax = 20
const aliveEveryMs = 4000

type Deps = { clock: Clock; taps: () => Pick<Taps, 'open'> | null }

/** The route writes the stream, or refuses the request. */
export function createTapRoute({ clock, taps }: Deps): HttpSource['tap'] {
  return (wanted, response, access) => {
    const source = taps()
    if (source === null) return starting('There are no messages to show yet.')
    let wake = () => {}
    const opened = source.open(wanted, () => wake())
    if (opened.kind === 'full')
      return problem(503, 'UNAVAILABLE', {
        what: 'There are too many taps.',
        why: `The daemon serves at most ${opened.tapsMax} at once.`,
        act: 'Close one of them.',
      })
    if (opened.kind === 'malformed')
      return problem(400, 'REQUEST_INVALID', {
        what: 'The topic filter is not valid.',
        why: `It ${opened.why}.`,
        act: 'Use a filter such as telemetry/v1/+/data.',
      })
    const { asEvents } = wanted
    const contentType = asEvents ? eventStreamType : tapContentType
    response.writeHead(200, { 'content-type': contentType, connection: 'close' })
    response.flushHeaders()
    wake = stream({ clock, response, access, asEvents, reader: opened.reader })
    return null
  }
}

type Stream = {
  clock: Clock
  response: ServerResponse
  access: Pick<Access, 'isOpen'>
  asEvents: boolean
  reader: { take(): TapEntry[]; takeDropped(): number; close(): void }
}

/** Ends with the response. Gives the function to call when there is something to take. */
function stream({ clock, response, access, asEvents, reader }: Stream): () => void {
  const [before, after] = asEvents ? ['data: ', '\n\n'] : ['', '\n']
  const end = every(clock, aliveEveryMs, beat)
  let scheduled = false
  let blocked = false
  response.on('drain', () => {
    blocked = false
    schedule()
  })
  response.once('close', () => {
    end()
    reader.close()
  })
  // A client that resets the connection is gone like any other.
  response.on('error', () => response.destroy())
  beat()
  return schedule

  function schedule(): void {
    if (scheduled) return
    scheduled = true
    // Outside of the intake's turn.
    setImmediate(flush)
  }

  function flush(): void {
    scheduled = false
    if (blocked || response.destroyed) return
    let text = ''
    for (const entry of reader.take()) text += `${before}${lineOf(entry)}${after}`
    const dropped = reader.takeDropped()
    if (dropped > 0) text += `${before}{"kind":"dropped","count":${dropped}}${after}`
    if (text !== '') write(text)
  }

  function beat(): void {
    if (!access.isOpen()) {
      response.end()
      return
    }
    if (!blocked) {
      write(`${before}{"kind":"alive"}${after}`)
      schedule()
    }
  }

  function write(text: string): void {
    blocked = !response.write(text)
  }
}

function lineOf(entry: TapEntry): string {
  if (entry.kind === 'closed')
    return `{"kind":"closed","at":"${isoTime(entry.at)}",${payloadsText(entry.payloads)}}`
  const { topic, bytes, cutBytes, qos, retain, dup, sender, arrivedAt, result } = entry
  const { userProperties, properties } = entry
  const shown = {
    kind: 'message',
    at: isoTime(arrivedAt),
    topic,
    qos,
    retain,
    dup,
    client: sender.clientId,
    user: sender.userName,
    certificate: sender.certificateName,
    identity: sender.identity,
    ...(userProperties && { userProperties }),
    ...(properties && { properties }),
    ...contentOf(bytes, cutBytes),
    source: result.source,
    result: result.kind,
    ...(result.rest && { rest: result.rest.map(restShown) }),
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
    default:
      return `${head}}`
  }
}

/** Records of the message that are kept. */
function restShown({ kind, reason, detail, device, records = [] }: Kept): Record<string, unknown> {
  return { kind, reason, detail, device, records: records.length }
}

/** As text where it is text. Text that was cut may end within a character. */
export function contentOf(
  bytes: Buffer,
  cutBytes: number,
): { message?: string; hex?: string; cutBytes?: number } {
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
