// request-body.ts: reads the body of a request and never holds more than the limit.

import type { IncomingMessage, ServerResponse } from 'node:http'

export type RequestBody =
  | { kind: 'whole'; bytes: Buffer }
  /** `unread`: the end did not arrive, so the connection cannot carry another request. */
  | { kind: 'too_large'; unread: boolean }
  /** The client closed the connection before the end. */
  | { kind: 'cut' }

/** A client that still writes may never read its 413. So many bytes are read and discarded. */
const discardFactor = 8

/** Settles when the body ends, the client closes the connection, or far too many bytes arrived. */
export function readRequestBody(
  request: IncomingMessage,
  response: ServerResponse,
  { bytesMax, expectsContinue }: { bytesMax: number; expectsContinue: boolean },
): Promise<RequestBody> {
  const announced = Number(request.headers['content-length'] ?? 0)
  // A client that sends Expect: 100-continue, or announces far too many bytes, gets its answer at once.
  if (announced > bytesMax && (expectsContinue || announced > bytesMax * discardFactor))
    return Promise.resolve({ kind: 'too_large', unread: true })
  if (expectsContinue) response.writeContinue()

  return new Promise((resolve) => {
    let parts: Buffer[] = []
    let bytes = 0
    request.on('data', (part: Buffer) => {
      bytes += part.length
      if (bytes <= bytesMax) {
        parts.push(part)
        return
      }
      parts = []
      if (bytes > bytesMax * discardFactor) {
        request.pause()
        resolve({ kind: 'too_large', unread: true })
      }
    })
    request.once('end', () =>
      resolve(
        bytes > bytesMax
          ? { kind: 'too_large', unread: false }
          : { kind: 'whole', bytes: Buffer.concat(parts, bytes) },
      ),
    )
    request.once('error', () => resolve({ kind: 'cut' }))
    // After `end` this changes nothing.
    request.once('close', () => resolve({ kind: 'cut' }))
  })
}
