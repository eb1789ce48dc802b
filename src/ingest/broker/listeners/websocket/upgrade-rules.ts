// upgrade-rules.ts: which HTTP requests become a WebSocket with MQTT in it. The first rule that is
// broken is the answer: a status and one line of text, which client libraries show.

import type { IncomingHttpHeaders } from 'node:http'
import { hostIn, isOwnHost, isSameOrigin } from '../../../../std/loopback.ts'
import type { RefusalReason } from '../../client-faults.ts'

export type UpgradeOptions = {
  /** Where in the URL the WebSocket is, such as `/mqtt`. A query is ignored. */
  path: string
  /**
   * Values of `Origin` that may connect; `*` for all. Requests without one are of no browser and may. So may
   * those with the origin of their own `Host`, where that is no rebound name: some libraries always send it.
   */
  origins: readonly string[]
  /** Names of this machine, in lower case, that cannot be rebound. */
  hosts?: ReadonlySet<string>
  /** With TLS no name can be: the certificate is not that of the other site. */
  isSecure?: boolean
}

export type UpgradeRequest = {
  method?: string | undefined
  url?: string | undefined
  headers: IncomingHttpHeaders
}

export type UpgradeRefusal = {
  status: 400 | 403 | 404 | 426
  reason: RefusalReason
  text: string
  /** Of the request, for the operator; it comes from outside. */
  found?: string
  headers?: Readonly<Record<string, string>>
}

/** [MQTT-6.0.0-3], [MQTT-6.0.0-4]. */
export const subprotocol = 'mqtt'

/** RFC 6455, section 4.1: 16 bytes as base64. */
const keyPattern = /^[+/0-9A-Za-z]{22}==$/
const versionHeader = { 'Sec-WebSocket-Version': '13' }

/** Null where the request may become a WebSocket. */
export function upgradeRefusal(
  { method, url = '', headers }: UpgradeRequest,
  options: UpgradeOptions,
): UpgradeRefusal | null {
  const { path } = options
  const { upgrade, origin, host = '' } = headers
  if (upgrade?.toLowerCase() !== 'websocket') return noUpgrade
  if (pathOf(url) !== path)
    return {
      status: 404,
      reason: 'websocket_path',
      text: `MQTT over WebSocket has the path ${path} here.`,
      found: pathOf(url),
    }
  if (headers['sec-websocket-version'] !== versionHeader['Sec-WebSocket-Version'])
    return { ...notValid('Sec-WebSocket-Version must be 13.'), status: 426, headers: versionHeader }
  if (method !== 'GET' || !keyPattern.test(headers['sec-websocket-key'] ?? ''))
    return notValid('The request must be a GET with a valid Sec-WebSocket-Key.')
  if (origin !== undefined && !allows(options, origin, host))
    return {
      status: 403,
      reason: 'websocket_origin',
      text: 'This Origin is not in websocket.origins of the listener, and its Host is not one in websocket.hosts.',
      found: origin,
    }
  if (!offersMqtt(headers['sec-websocket-protocol']))
    return {
      status: 400,
      reason: 'websocket_protocol_missing',
      text: `Sec-WebSocket-Protocol must offer ${subprotocol}.`,
      found: headers['sec-websocket-protocol'] ?? 'no subprotocol',
    }
  return null
}

export const noUpgrade: UpgradeRefusal = {
  status: 426,
  reason: 'http_no_upgrade',
  text: 'This is MQTT over WebSocket: the request must ask for an upgrade to websocket.',
  headers: { Upgrade: 'websocket', ...versionHeader },
}

export function notValid(text: string): UpgradeRefusal {
  return { status: 400, reason: 'websocket_request', text }
}

function pathOf(url: string): string {
  const end = url.indexOf('?')
  return end < 0 ? url : url.slice(0, end)
}

/** Browsers write scheme and host in lower case; nothing else needs to be equal. */
function allows(
  { origins, hosts = new Set(), isSecure = false }: UpgradeOptions,
  origin: string,
  host: string,
): boolean {
  if (origins.includes('*') || origins.includes(origin.toLowerCase())) return true
  const name = hostIn(host)
  return name !== null && isSameOrigin(origin, host) && (isSecure || isOwnHost(name, hosts))
}

function offersMqtt(header: string | undefined): boolean {
  return header !== undefined && header.split(',').some((name) => name.trim() === subprotocol)
}
