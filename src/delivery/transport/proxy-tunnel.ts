// proxy-tunnel.ts: connections to the service through a proxy, by CONNECT; for http as well as for https, so
// that the request is the same with and without a proxy, and the proxy neither reads nor changes it.
//
// undici's ProxyAgent waits without end for a proxy that accepts the connection and does not answer: its pool
// would lose one connection after the other until nothing is sent. Here one deadline covers all of it.

import { request as httpsRequest } from 'node:https'
import { isIP } from 'node:net'
import type { LookupFunction, Socket } from 'node:net'
import { rootCertificates } from 'node:tls'
import type { buildConnector } from 'undici'
import { request as httpRequest } from '../../std/node-http.ts'
import { addressAttempts } from '../../std/network-faults/address-attempts.ts'
import { codeOf, messageOf } from '../../std/gateway-error.ts'
import { attemptsOf } from '../../std/network-faults/network-faults.ts'
import { hostOf, portOf } from '../proxy.ts'
import type { Proxy } from '../proxy.ts'

export type TunnelOptions = {
  proxy: Proxy
  timeoutMs: number
  /** PEM of authorities that may sign the certificate of an https proxy, besides the public ones. */
  ca: string | undefined
  /** In place of that of Node. */
  lookup?: LookupFunction
}

/** A connector for a pool; `connectTls` does the TLS handshake with the service over the tunnel. */
export function createTunnel(
  options: TunnelOptions,
  connectTls: buildConnector.connector,
): buildConnector.connector {
  return (target, opened) => {
    const authority = `${target.hostname}:${target.port || (target.protocol === 'https:' ? '443' : '80')}`
    openTunnel(options, authority).then(
      (socket) => {
        if (target.protocol === 'https:') connectTls({ ...target, httpSocket: socket }, opened)
        else opened(null, socket)
      },
      (error: Error) => opened(error, null),
    )
  }
}

/** An unused connection to `authority`. Rejects with a code `TUNNEL_...` that unreachable.ts knows. */
export function openTunnel(
  { proxy, timeoutMs, ca, lookup }: TunnelOptions,
  authority: string,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const url = new URL(proxy.url)
    const host = hostOf(url)
    const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)({
      method: 'CONNECT',
      host,
      // Node would use the name of the Host header, which is that of the service.
      servername: isIP(host) === 0 ? host : '',
      port: portOf(url),
      path: authority,
      agent: false,
      ...addressAttempts(timeoutMs),
      headers: {
        host: authority,
        ...(proxy.authorization === null ? {} : { 'proxy-authorization': proxy.authorization }),
      },
      ...(ca === undefined ? {} : { ca: [ca, ...rootCertificates] }),
      ...(lookup === undefined ? {} : { lookup }),
    })
    const fail = (code: string, why: string) => {
      clearTimeout(timer)
      request.destroy()
      reject(Object.assign(new Error(`${url.host}: ${why}`), { code }))
    }
    const timer = setTimeout(
      () => fail('TUNNEL_TIMEOUT', `no tunnel to ${authority} within ${timeoutMs} ms`),
      timeoutMs,
    )
    request.on('error', (error) =>
      fail('TUNNEL_UNREACHABLE', attemptsOf(error).tried || (codeOf(error) ?? messageOf(error))),
    )
    request.on('connect', ({ statusCode = 0 }, socket, head) => {
      clearTimeout(timer)
      if (statusCode < 200 || statusCode > 299) {
        socket.destroy()
        reject(
          Object.assign(new Error(`${url.host} answers ${statusCode} for ${authority}`), {
            code: `TUNNEL_${statusCode}`,
          }),
        )
        return
      }
      if (head.length > 0) socket.unshift(head)
      resolve(socket)
    })
    request.end()
  })
}
