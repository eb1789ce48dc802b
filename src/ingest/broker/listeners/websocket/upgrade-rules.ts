// upgrade-rules.ts: which HTTP requests become a WebSocket with MQTT in it. The first rule that is
// broken is the answer: a status and one line of text, which client libraries show.

import type { IncomingHttpHeaders } from 'node:http'
import type { RefusalReason } from '../../client-faults.ts'

export type UpgradeOptions = {
  /** Where in the URL the WebSocket is, such as `/mqtt`. A query is ignored. */
  path: string
  /** Values of `Origin` that may connect; `*` for all. Requests without one are of no browser and may. */
  origins: readonly string[]
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
  { path, origins }: UpgradeOptions,
): UpgradeRefusal | null {
  const { upgrade, origin } = headers
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
  if (origin !== undefined && !allows(origins, origin))
    return {
      status: 403,
      reason: 'websocket_origin',
      text: 'The origin of this page is not in websocket.origins of the listener.',
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
function allows(origins: readonly string[], origin: string): boolean {
  return origins.includes('*') || origins.includes(origin.toLowerCase())
}

function offersMqtt(header: string | undefined): boolean {
  return header !== undefined && header.split(',').some((name) => name.trim() === subprotocol)
}
