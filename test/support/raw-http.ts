// raw-http.ts: requests as programs send them that are no browser: any header, any bytes.

import { request } from 'node:http'
import { request as requestHttps } from 'node:https'
import { connect } from 'node:net'

export type RawRequest = { method?: string; headers?: Record<string, string>; body?: string; ca?: string }
export type RawAnswer = {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
}

/** Sends a request with headers, and with a path, that fetch would not let us choose. */
export function rawRequest(
  url: string | null,
  path: string,
  { method = 'GET', headers = {}, body, ca }: RawRequest = {},
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const by = url?.startsWith('https:') ? requestHttps : request
    const options = { method, headers, path, agent: false, ...(ca ? { ca } : {}) } as const
    const sent = by(url ?? '', options, (response) => {
      let text = ''
      response.on('data', (chunk: Buffer) => (text += chunk.toString()))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }))
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

/** Sends bytes as they are. What comes until the connection is closed, as text. */
export function exchange(url: string | null, bytes: string, more: { end?: boolean } = {}): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    const socket = connect(Number(new URL(url ?? '').port), '127.0.0.1', () =>
      more.end ? socket.end(bytes) : socket.write(bytes),
    )
    socket.on('data', (chunk) => (text += chunk.toString('latin1')))
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(text))
  })
}
