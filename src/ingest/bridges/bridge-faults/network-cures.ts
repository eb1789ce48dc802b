// network-cures.ts: what errors of MQTT, of WebSocket and of the first bytes mean, and what a person can do.
// Those of the network are in std/network-faults. The texts of mqtt.js are not shown; their code is.

import { isIP } from 'node:net'
import { networkFault } from '../../../std/network-faults/network-faults.ts'
import { bounded, quote } from '../../../std/quote.ts'
import { bridgePlace, defaultPorts, type BridgeUrl } from '../bridge-address.ts'
import type { Cure, FaultPlace } from './cures.ts'

type Row = readonly [pattern: RegExp, cure: (place: FaultPlace) => Cure]

const checkUrl = 'Check scheme, host and port in `url` of the bridge.'
const checkVersion = (isVersion5: boolean) =>
  isVersion5 ? ' If the broker does not know MQTT 5, set `protocol: 3.1.1`.' : ''

/** What a port that closes may be for. */
const otherPorts: Readonly<Record<BridgeUrl['scheme'], string>> = {
  mqtt: 'A port for TLS (usually 8883) needs mqtts://, one for WebSocket ws:// or wss://.',
  mqtts: 'A port without TLS (usually 1883) needs mqtt://, one for WebSocket wss://.',
  ws: 'A port for plain MQTT (usually 1883) needs mqtt://, one for TLS wss:// or mqtts://.',
  wss: 'A port without TLS needs ws://, one for plain MQTT mqtt:// or mqtts://.',
}

/** Codes that only MQTT and WebSocket have; the first match counts. */
const rows: readonly Row[] = [
  [
    /^NO_CONNACK$/,
    ({ url, isVersion5 }) => ({
      why: `${address(url)} accepts the connection, and sends no CONNACK in connect_timeout.`,
      act:
        `${checkUrl} ${otherPorts[url.scheme]}${checkVersion(isVersion5)} ` +
        'An overloaded broker does so, too.',
    }),
  ],
  [
    /^NO_SUBACK$/,
    () => ({
      why: 'The broker did not answer the subscription: there was no answer in connect_timeout.',
      act: 'Look into the log of the broker. If it is slow, raise `connect_timeout` of the bridge.',
    }),
  ],
  [
    /^KEEPALIVE$/,
    () => ({
      why: 'The broker did not answer PINGREQ in 1.5 times keepalive.',
      act: 'Check the network between this machine and the broker, and the load of both.',
    }),
  ],
  [
    /^HPE_/,
    ({ url }) => ({
      why: `The answer of ${address(url)} is not HTTP, so it is no WebSocket.`,
      act: `${checkUrl} A port for plain MQTT needs mqtt:// or mqtts://.`,
    }),
  ],
  [
    /^WS_ERR_/,
    () => ({
      why: 'The broker sends what WebSocket does not allow.',
      act: 'Look into the log of the broker, and of a proxy before it.',
    }),
  ],
  [
    /^malformed_packet$/,
    () => ({
      why: 'The broker sent a packet that breaks the protocol.',
      act: 'Look into the log of the broker. If one message is the cause, remove it there; the gateway cannot skip it.',
    }),
  ],
  [
    /^TOO_MANY_PACKETS$/,
    () => ({
      why: 'The broker sends more packets than a broker needs, and they are no messages.',
      act: 'Look into the log of the broker, and of a proxy before it: something there sends packets without end.',
    }),
  ],
  [
    /^packet_too_large$/,
    () => ({
      why: 'The broker sent a packet that is larger than max_packet_bytes, and it is no message.',
      act: 'Raise `max_packet_bytes` of the bridge, or correct scheme and port in `url` if this is no MQTT broker.',
    }),
  ],
]

/** `code`: of an error of Node or of ours. Null where it is not known. */
export function networkCure(
  code: string,
  place: FaultPlace,
  error: unknown,
): (Cure & { tried: string }) | null {
  const own = rows.find(([pattern]) => pattern.test(code))?.[1](place)
  if (own !== undefined) return { ...own, tried: '' }
  const where = { peer: 'the broker', host: place.url.host, address: address(place.url), ports }
  const fault = networkFault(error, bridgePlace(where, place.tls), { code })
  return fault === null ? null : { why: `${fault.why}.`, act: fault.act, tried: fault.tried }
}

const ports = 'Usual ports are 1883 for mqtt://, 8883 for mqtts://.'

/** The connection was closed or reset. */
export function closedCure({ stage, url, isVersion5 }: FaultPlace): Cure {
  if (stage === 'connecting')
    return {
      why: `The broker closes the connection to ${address(url)} without an answer.`,
      act:
        `${checkUrl} ${otherPorts[url.scheme]}${checkVersion(isVersion5)} ` +
        'If it was connected before, look into the log of the broker.',
    }
  if (stage === 'subscribing')
    return {
      why: 'The broker accepts the connection, and closes it at the subscription.',
      act: 'Check that the user may read `topics` of the bridge, and that no other client has the same client id.',
    }
  return {
    why: 'The connection was closed by the broker or the network.',
    act: 'Nothing, if the bridge connects again. If it repeats, look into the log of the broker.',
  }
}

/** An HTTP status in place of a WebSocket. */
export function upgradeCure(status: number, { url }: FaultPlace): Cure {
  const why = `${address(url)} answers with the HTTP status ${status} on the path ${quote(url.path, 100)}, and opens no WebSocket.`
  if (status === 401 || status === 403)
    return { why, act: 'Ask the operator of the broker which path and which user are for MQTT.' }
  if (status >= 300 && status < 400)
    return { why, act: 'Set `url` of the bridge to the final address; the gateway follows no redirection.' }
  if (status >= 500) return { why, act: 'Check that the broker behind this server runs.' }
  return { why, act: 'Check the path in `url` of the bridge, often /mqtt.' }
}

const firstBytes: readonly (readonly [start: string, what: string, act: string])[] = [
  ['HTTP/', 'an HTTP server', 'Use the MQTT port of the broker, or ws:// or wss:// for MQTT over WebSocket.'],
  // An alert and a handshake.
  ['\x15\x03', 'TLS', 'Use mqtts:// (wss:// for WebSocket).'],
  ['\x16\x03', 'TLS', 'Use mqtts:// (wss:// for WebSocket).'],
  ['AMQP', 'AMQP', 'Use the MQTT port of the broker, usually 1883; 5672 is that of AMQP.'],
  [
    'INFO ',
    'the own protocol of NATS',
    'Use the MQTT port of NATS, usually 1883; 4222 is that of its own protocol.',
  ],
  ['SSH-', 'SSH', checkUrl],
  ['220', 'a mail or FTP server', checkUrl],
]

/** What answers in place of a broker. */
export function notMqttCure(start: string, { url }: FaultPlace): Cure {
  const known = firstBytes.find(([bytes]) => start.startsWith(bytes))
  const what = known === undefined ? '' : `: it is ${known[1]}`
  return {
    why: `The answer of ${address(url)} is not MQTT${what}.`,
    act: known?.[2] ?? `${checkUrl} Usual ports: 1883 for mqtt://, 8883 for mqtts://.`,
  }
}

export function address({ host, port, scheme }: BridgeUrl): string {
  const name = isIP(host) === 6 ? `[${host}]` : host
  return `${bounded(name, 200)}:${port === 0 ? defaultPorts[scheme] : port}`
}
