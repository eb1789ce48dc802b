// bridge-faults.ts: why a bridge has no connection, and what a person can do. The only place that turns an
// error of Node or mqtt.js, a closed connection, and an answer of the broker into words: for the log, the
// condition, /status, `check --connect` and `doctor`. The entry file of the folder.
//
//   answer-codes.ts    codes of CONNACK, SUBACK and DISCONNECT
//   network-cures.ts   name, TCP, TLS, WebSocket, and servers that do not speak MQTT
//
// Raw texts of libraries are not shown: they name neither cause nor cure, and change with each version.

import type { IConnackPacket } from 'mqtt-packet'
import { messageOf } from '../../../std/gateway-error.ts'
import { attemptsOf } from '../../../std/network-faults/network-faults.ts'
import { quote } from '../../../std/quote.ts'
import type { BridgeOptions } from '../types.ts'
import { connackCure, disconnectCure, shareCure, subackCure, wildcardCure } from './answer-codes.ts'
import type { Cure, FaultPlace } from './cures.ts'
import { closedCure, networkCure, notMqttCure, upgradeCure } from './network-cures.ts'

export type { FaultPlace } from './cures.ts'

/** Stable codes: why a connection ended, or was not made. */
export type LossReason =
  | 'unreachable'
  | 'tls_failed'
  | 'not_mqtt'
  | 'refused'
  | 'subscription_refused'
  | 'not_supported'
  | 'disconnected'
  | 'connection_lost'
  | 'malformed_packet'
  | 'packet_too_large'
  | 'not_stored'
  | 'silent'

/**
 * `detail` and `act` are sentences. `isRefused`: nothing listens there, as while a broker restarts.
 * `isClosed`: the other side closed it, and did not say why.
 */
export type Fault = {
  reason: LossReason
  detail: string
  act: string
  isRefused?: boolean
  isClosed?: boolean
}

/** The answer to one filter: the granted QoS, or a refusal of 128 and above (MQTT 3.9.3). */
export type Granted = { filter: string; code: number }

export const refusedFrom = 128

type OwnCode =
  | 'CLOSED'
  | 'NO_SUBACK'
  | 'ETIMEDOUT'
  | 'malformed_packet'
  | 'packet_too_large'
  | 'NOT_MQTT'
  | 'TOO_MANY_PACKETS'

/** An end of a connection for which there is no error. */
export class ConnectionFault extends Error {
  readonly code: OwnCode
  /** The first bytes of an answer that is not MQTT. */
  readonly start: string

  constructor(code: OwnCode, start = '', cause?: unknown) {
    super(code, { cause })
    this.code = code
    this.start = start
  }
}

const closedCodes = new Set(['CLOSED', 'ECONNRESET', 'EPIPE', 'ECONNABORTED', 'ERR_STREAM_PREMATURE_CLOSE'])
const tlsCode = /^(CERT_|ERR_TLS|ERR_SSL|ERR_OSSL|EPROTO|UNABLE_TO|SELF_SIGNED|DEPTH_ZERO|HOSTNAME)/

/** An error of the socket, of TLS or of mqtt.js, before or after CONNACK. */
export function faultOf(thrown: unknown, place: FaultPlace): Fault {
  const { cause: error } = attemptsOf(thrown)
  const isOpen = place.stage === 'open'
  const code = codeAs(error)
  if (typeof code === 'number') return refused(code, place)
  if (error instanceof ConnectionFault && error.code === 'NOT_MQTT')
    return { reason: 'not_mqtt', ...detailed(notMqttCure(error.start, place)) }
  const status = /^Unexpected server response: (\d{3})/.exec(messageOf(error))?.[1]
  if (status !== undefined) return { reason: 'not_mqtt', ...detailed(upgradeCure(Number(status), place)) }
  if (closedCodes.has(code)) return { reason: lost(place), ...detailed(closedCure(place)), isClosed: true }
  const cure = networkCure(code, place, thrown)
  if (code === 'malformed_packet' || code === 'packet_too_large')
    return { reason: code, ...detailed(cure ?? closedCure(place)) }
  const reason = tlsCode.test(code) && !isOpen ? 'tls_failed' : lost(place)
  const shown = /^[A-Z0-9_/]{3,60}$/.test(code) && !(error instanceof ConnectionFault) ? ` (${code})` : ''
  const isRefused = code === 'ECONNREFUSED'
  if (cure !== null) {
    const { why, act, tried } = cure
    return { reason, detail: why.replace(/\.$/, `${tried === '' ? shown : ` (${tried})`}.`), act, isRefused }
  }
  return {
    reason,
    detail: `The connection failed${shown}: ${quote(messageOf(error), 200)}.`,
    act: 'Check scheme, host and port in `url` of the bridge, and look into the log of the broker.',
  }
}

/** DISCONNECT of the broker (MQTT 5). */
export function disconnectFault(code: number, place: FaultPlace): Fault {
  return { reason: 'disconnected', ...detailed(withWords(disconnectCure(code, place), place)) }
}

/** The refused filters; null where all were granted. */
export function subscriptionFault(granted: readonly Granted[], place: FaultPlace): Fault | null {
  const refusals = granted.filter(({ code }) => code >= refusedFrom)
  const first = refusals[0]
  if (first === undefined) return null
  const cure = withWords(subackCure(first.code, place), place)
  return {
    reason: 'subscription_refused',
    detail: `The broker refuses the subscription to ${filtersText(refusals)}. ${cure.why}`,
    act: cure.act,
  }
}

/** What CONNACK says that the broker does not have, and the config asks for; null where it has all. */
export function supportFault(
  { properties }: IConnackPacket,
  { shareGroup, topics }: BridgeOptions,
): Fault | null {
  if (shareGroup !== null && properties?.sharedSubscriptionAvailable === false) {
    const { why, act } = shareCure()
    return { reason: 'not_supported', detail: `share_group is ${quote(shareGroup, 64)}. ${why}`, act }
  }
  const wild = topics.find((topic) => /[+#]/.test(topic))
  if (wild !== undefined && properties?.wildcardSubscriptionAvailable === false) {
    const { why, act } = wildcardCure()
    return { reason: 'not_supported', detail: `\`topics\` has ${quote(wild, 100)}. ${why}`, act }
  }
  return null
}

export function filtersText(refusals: readonly Granted[]): string {
  const shown = refusals.slice(0, 5).map(({ filter, code }) => `${quote(filter, 100)} (code ${code})`)
  const more = refusals.length > shown.length ? ` and ${refusals.length - shown.length} more` : ''
  return shown.join(', ') + more
}

/** CONNACK with a code, or what mqtt.js reports with one. */
function refused(code: number, place: FaultPlace): Fault {
  return { reason: 'refused', ...detailed(withWords(connackCure(code, place), place)) }
}

/** A code of CONNACK as a number; else what the error is called. */
function codeAs(error: unknown): number | string {
  const { code } = (error ?? {}) as { code?: unknown }
  const text = messageOf(error)
  if (typeof code === 'number') return text.startsWith('Connection refused') ? code : 'malformed_packet'
  if (typeof code === 'string') return code
  if (text === 'connack timeout') return 'NO_CONNACK'
  if (text === 'Keepalive timeout') return 'KEEPALIVE'
  if (text === 'Connection closed' || text.startsWith('client disconnecting') || text === '') return 'CLOSED'
  if (/socket hang up|WebSocket was closed/.test(text)) return 'CLOSED'
  if (error instanceof TypeError || error instanceof RangeError) return error.name
  // The parser of mqtt.js has texts and no codes: for any packet that it cannot read.
  return 'malformed_packet'
}

function lost({ stage }: FaultPlace): LossReason {
  return stage === 'connecting' ? 'unreachable' : 'connection_lost'
}

function detailed({ why, act }: Cure): Pick<Fault, 'detail' | 'act'> {
  return { detail: why, act }
}

/** With what the broker says itself. */
function withWords(cure: Cure, { reasonString }: FaultPlace): Cure {
  if (reasonString === null || reasonString === '') return cure
  return { why: `${cure.why} It says ${quote(reasonString, 200)}.`, act: cure.act }
}
