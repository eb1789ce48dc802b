// reply.ts: writes an answer to the socket, complete or changed by a fault.

import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Answer } from './answers.ts'
import type { BodyFault } from '../fault-injection.ts'

const html =
  '<!DOCTYPE html>\n<html><head><title>Bad gateway</title></head><body><h1>Bad gateway</h1>' +
  '<p>The proxy server received an invalid response from an upstream server.</p></body></html>\n'

const blanks = Buffer.alloc(65_536, ' ')

export type ReplyOptions = {
  date: string
  fault: BodyFault | null
  hugeBytes: number
  /** The request was not read to its end, so the connection cannot carry another one. */
  close: boolean
}

/** Resolves when the socket has everything, or the client is gone. */
export async function reply(response: ServerResponse, answer: Answer, options: ReplyOptions): Promise<void> {
  if (response.destroyed) return
  const whole = Buffer.from(answer.body)
  const head = (length: number | null, type?: string) =>
    response.writeHead(answer.status, {
      date: options.date,
      ...answer.headers,
      ...(type === undefined ? {} : { 'content-type': type }),
      ...(length === null ? {} : { 'content-length': length }),
      ...(options.close ? { connection: 'close' } : {}),
    })
  const send = (bytes: Buffer, type?: string) => {
    head(bytes.length, type)
    response.end(bytes)
  }
  switch (options.fault) {
    case null:
      return send(whole)
    case 'empty':
      return send(Buffer.alloc(0))
    case 'html':
      return send(Buffer.from(html), 'text/html; charset=utf-8')
    case 'half':
      return send(whole.subarray(0, whole.length >> 1))
    case 'truncated':
      head(whole.length)
      response.write(whole.subarray(0, whole.length >> 1), () => response.socket?.destroySoon())
      return
    case 'huge':
      head(null)
      await writeBlanks(response, options.hugeBytes)
      response.end(whole)
  }
}

/** Ends after the last byte, or when the client closes the connection. */
async function writeBlanks(response: ServerResponse, bytes: number): Promise<void> {
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  for (let rest = bytes; rest > 0 && !response.destroyed; rest -= blanks.length) {
    if (response.write(blanks.subarray(0, rest))) continue
    // Rejects only when `gone` aborts, and the loop then ends.
    await once(response, 'drain', { signal: gone.signal }).catch(() => undefined)
  }
}
