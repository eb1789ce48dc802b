// accepting-service.ts: an ingestion service that verifies no signature. It accepts everything or does not answer, and
// records which payloads came under which batchId. Payloads are numbers: the offset of their time.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export type AcceptingService = AsyncDisposable & {
  readonly url: string
  /** Payload numbers by batchId, of everything that was received since the last forget(). */
  readonly received: ReadonlyMap<string, readonly number[]>
  readonly acceptedCount: number
  /** Accepts from now on, or leaves requests without an answer. */
  setAnswering(answering: boolean): void
  forget(): void
}

type Payload = { payloadId: string; signalTimestamp: number }

export async function openAcceptingService(firstTime: () => number): Promise<AcceptingService> {
  const received = new Map<string, readonly number[]>()
  let acceptedCount = 0
  let answering = true
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('error', () => undefined)
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(parts).toString('utf8')) as
        Payload | { batchId: string; data: Payload[] }
      const payloads = 'data' in body ? body.data : [body]
      const batchId = 'data' in body ? body.batchId : `single ${body.payloadId}`
      const numbers = payloads.map(({ signalTimestamp }) => signalTimestamp - firstTime())
      const before = received.get(batchId)
      if (before !== undefined && before.join() !== numbers.join())
        received.set(`${batchId} with other content`, numbers)
      else received.set(batchId, numbers)
      if (!answering) return
      acceptedCount += payloads.length
      const accepted = payloads.map(({ payloadId }) => payloadId)
      const summary = { total: accepted.length, accepted: accepted.length, failed: 0 }
      const answer =
        'data' in body
          ? { requestId: 'request', responseCode: 200, accepted, failed: [], summary }
          : { requestId: 'request' }
      response.writeHead('data' in body ? 200 : 202, { 'content-type': 'application/json' })
      response.end(JSON.stringify(answer))
    })
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    get acceptedCount() {
      return acceptedCount
    },
    setAnswering(next) {
      answering = next
    },
    forget() {
      received.clear()
      acceptedCount = 0
    },
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
