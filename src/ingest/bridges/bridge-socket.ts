// bridge-socket.ts: opens the connection to a broker: TCP, TLS, or WebSocket over either.

import { connect as connectTcp, isIP } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { streamBuilder } from 'mqtt/lib/connect/ws'
import type { BridgeTls, BridgeUrl } from './bridge-address.ts'

export function openSocket({ scheme, host, port, path }: BridgeUrl, tls: BridgeTls): Duplex {
  const keepAlive = { noDelay: true, keepAlive: true } as const
  if (scheme === 'mqtt') return connectTcp({ host, port, ...keepAlive })
  const security = {
    ...(tls.ca !== null && { ca: tls.ca }),
    ...(tls.cert !== null && { cert: tls.cert }),
    ...(tls.key !== null && { key: tls.key.reveal() }),
    // An address is no server name (RFC 6066); the certificate is checked against it all the same.
    servername: tls.serverName ?? (isIP(host) === 0 ? host : ''),
  }
  if (scheme === 'mqtts') return connectTls({ host, port, ...keepAlive, ...security })
  const hostname = host.includes(':') ? `[${host}]` : host
  const options = { protocol: scheme, hostname, port, path, ...(scheme === 'wss' && { wsOptions: security }) }
  // The builder of mqtt.js uses the client for URLs that the options transform; these do not.
  return streamBuilder(null as never, options) as Duplex
}
