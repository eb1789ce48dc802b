// proxy-tunnel.ts: connections to the service through a proxy, by CONNECT; for http as well as for https, so that a request
// is the same on every way and nobody between reads or changes it.
//
// undici's ProxyAgent waits without end for a proxy that takes the connection and says nothing: the connections of
// its pool would be lost one by one, until nothing is sent any more. Here all of it has one deadline.

import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP } from 'node:net'
import type { Socket } from 'node:net'
import { rootCertificates } from 'node:tls'
import type { buildConnector } from 'undici'
import { codeOf, messageOf } from '../../std/gateway-error.ts'
import type { Proxy } from '../proxy.ts'

export type TunnelOptions = {
  proxy: Proxy
  timeoutMs: number
  /** PEM of authorities that may sign the certificate of an https proxy, besides the public ones. */
  ca: string | null
}

/** A connector for a pool; `connectTls` speaks TLS with the service over the tunnel. */
export function createTunnel(
  options: TunnelOptions,
  connectTls: buildConnector.connector,
): buildConnector.connector {
  return (asked, opened) => {
    const authority = `${asked.hostname}:${asked.port || (asked.protocol === 'https:' ? '443' : '80')}`
    openTunnel(options, authority).then(
      (socket) => {
        if (asked.protocol === 'https:') connectTls({ ...asked, httpSocket: socket }, opened)
        else opened(null, socket)
      },
      (error: Error) => opened(error, null),
    )
  }
}

/** A connection to `authority` that nothing was said on. Rejects with a code `TUNNEL_...` that unreachable.ts knows. */
export function openTunnel({ proxy, timeoutMs, ca }: TunnelOptions, authority: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const url = new URL(proxy.url)
    const host = url.hostname.replace(/^\[|\]$/g, '')
    const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)({
      method: 'CONNECT',
      host,
      // Node would take the name from the Host header, which is the service's.
      servername: isIP(host) === 0 ? host : '',
      port: url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port),
      path: authority,
      agent: false,
      headers: {
        host: authority,
        ...(proxy.authorization === null ? {} : { 'proxy-authorization': proxy.authorization }),
      },
      ...(ca === null ? {} : { ca: [ca, ...rootCertificates] }),
    })
    const fail = (code: string, why: string) => {
      clearTimeout(timer)
      request.destroy()
      reject(Object.assign(new Error(`${url.host}: ${why}`), { code }))
    }
    const timer = setTimeout(
      () => fail('TUNNEL_TIMEOUT', `no way to ${authority} within ${timeoutMs} ms`),
      timeoutMs,
    )
    request.on('error', (error) => fail('TUNNEL_UNREACHABLE', codeOf(error) ?? messageOf(error)))
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
