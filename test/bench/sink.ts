// sink.ts: the ingestion service as a sink that is as fast as it can be: it accepts everything, checks nothing.
//
//   node test/bench/sink.ts [--closed 1] [--answerMs 0]     prints {"port":N}; ends with its standard input
//
// POST /v2/telemetry/batch   200 with the breakdown of ingestion-api.md 2.7; 500 while it is closed
// POST /v2/telemetry         202; the same while it is closed
// POST /sink/open, /sink/close
// GET  /sink/stats           SinkStats, about what was accepted since the last open

import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createLatency } from '../../src/simulate/ack-latency.ts'
import type { LatencySummary } from '../../src/simulate/ack-latency.ts'
import { endWithParent, numbersOf, writeLine } from './script.ts'

export type SinkStats = {
  requests: number
  payloads: number
  bytes: number
  /** Requests that were refused because it is closed. */
  refused: number
  /** Payloads a second between the moments in which 5 % and 95 % of `payloads` were there; 0 while unknown. */
  steadyPerS: number
  /** From the first accepted batch to the last. */
  tookMs: number
  /** Of payloads of devices named live-*: from their device time, which is when they were published, until here. */
  live: LatencySummary
}

const idHead = '"payloadId":"'
const idLength = 36

const options = numbersOf({ closed: 0, answerMs: 0 })
let open = options.closed === 0
let counts = { requests: 0, payloads: 0, bytes: 0, refused: 0 }
/** After each accepted batch: when, and how many payloads there were then. */
let curve: { atMs: number; payloads: number }[] = []
let lastRequest = 0
let live = createLatency()

endWithParent()
const server = createServer((request, response) => {
  const parts: Buffer[] = []
  request.on('data', (part: Buffer) => parts.push(part))
  request.on('end', () => answer(request, response, parts))
})
server.keepAliveTimeout = 120_000
server.listen(0, '127.0.0.1', () => writeLine({ port: (server.address() as AddressInfo).port }))

function answer(request: IncomingMessage, response: ServerResponse, parts: readonly Buffer[]): void {
  const asked = `${request.method} ${request.url}`
  switch (asked) {
    case 'POST /v2/telemetry/batch':
    case 'POST /v2/telemetry':
      take(response, parts, asked === 'POST /v2/telemetry' ? 202 : 200)
      return
    case 'POST /sink/open':
    case 'POST /sink/close':
      open = asked.endsWith('open')
      counts = { requests: 0, payloads: 0, bytes: 0, refused: 0 }
      curve = []
      live = createLatency()
      send(response, 200, '{}')
      return
    case 'GET /sink/stats':
      send(response, 200, JSON.stringify(stats()))
      return
    default:
      send(response, 404, '{}')
  }
}

function take(response: ServerResponse, parts: readonly Buffer[], status: 200 | 202): void {
  const requestId = `sink-${++lastRequest}`
  if (!open) {
    counts.refused += 1
    send(response, 500, JSON.stringify({ requestId }))
    return
  }
  const [first] = parts
  const body = parts.length === 1 && first ? first : Buffer.concat(parts)
  const { accepted, total } = acceptedOf(body)
  counts.requests += 1
  counts.payloads += total
  counts.bytes += body.length
  curve.push({ atMs: performance.now(), payloads: counts.payloads })
  noteLive(body)
  sendLater(
    response,
    status,
    status === 202
      ? JSON.stringify({ requestId })
      : `{"requestId":"${requestId}","responseCode":200,"accepted":[${accepted}],"failed":[],` +
          `"summary":{"total":${total},"accepted":${total},"failed":0}}`,
  )
}

/** The payloadIds of a body as JSON strings with commas, found without parsing it. */
function acceptedOf(body: Buffer): { accepted: string; total: number } {
  const text = body.toString('latin1')
  const ids: string[] = []
  for (let at = text.indexOf(idHead); at >= 0; at = text.indexOf(idHead, at + idLength)) {
    at += idHead.length
    ids.push(text.slice(at - 1, at + idLength + 1))
  }
  return { accepted: ids.join(), total: ids.length }
}

function noteLive(body: Buffer): void {
  if (body.indexOf('"live-') < 0) return
  const now = Date.now()
  const { data } = JSON.parse(body.toString('utf8')) as { data: LivePayload[] }
  for (const { signalTimestamp, deviceIdentifier, assetIdentifier } of data) {
    const id = deviceIdentifier?.id ?? assetIdentifier?.id ?? ''
    if (id.startsWith('live-')) live.record(now - signalTimestamp)
  }
}

type LivePayload = {
  signalTimestamp: number
  deviceIdentifier?: { id: string }
  assetIdentifier?: { id: string }
}

/** As a service that needs its time for each batch. */
function sendLater(response: ServerResponse, status: number, body: string): void {
  if (options.answerMs === 0) send(response, status, body)
  else setTimeout(() => send(response, status, body), options.answerMs)
}

function send(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  })
  response.end(body)
}

function stats(): SinkStats {
  const reached = (share: number) => curve.find(({ payloads }) => payloads >= share * counts.payloads)
  const [from, to] = [reached(0.05), reached(0.95)]
  const seconds = from && to ? (to.atMs - from.atMs) / 1000 : 0
  return {
    ...counts,
    steadyPerS: from && to && seconds > 0 ? (to.payloads - from.payloads) / seconds : 0,
    live: live.summary(),
    tookMs: (curve.at(-1)?.atMs ?? 0) - (curve[0]?.atMs ?? 0),
  }
}
