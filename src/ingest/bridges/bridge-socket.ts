// bridge-socket.ts: opens the connection to a broker: TCP, TLS, or WebSocket over either.

import { connect as connectTcp, isIP } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { streamBuilder } from 'mqtt/lib/connect/ws'
import { addressAttempts } from '../../std/network-faults/address-attempts.ts'
import type { BridgeTls, BridgeUrl } from './bridge-address.ts'

export function openSocket(
  { scheme, host, port, path }: BridgeUrl,
  tls: BridgeTls,
  connectTimeoutMs: number,
): Duplex {
  const attempts = addressAttempts(connectTimeoutMs)
  const socket = { noDelay: true, keepAlive: true, ...attempts }
  if (scheme === 'mqtt') return connectTcp({ host, port, ...socket })
  const security = {
    ...(tls.ca !== null && { ca: tls.ca }),
    ...(tls.cert !== null && { cert: tls.cert }),
    ...(tls.key !== null && { key: tls.key.reveal() }),
    // An address is no server name (RFC 6066); the certificate is checked against it all the same.
    servername: tls.serverName ?? (isIP(host) === 0 ? host : ''),
  }
  if (scheme === 'mqtts') return connectTls({ host, port, ...socket, ...security })
  const hostname = host.includes(':') ? `[${host}]` : host
  const wsOptions = { ...attempts, ...(scheme === 'wss' && security) }
  const options = { protocol: scheme, hostname, port, path, wsOptions }
  // The builder of mqtt.js uses the client for URLs that the options transform; these do not.
  return streamBuilder(null as never, options) as Duplex
}
