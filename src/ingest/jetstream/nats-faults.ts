// nats-faults.ts: why there is no connection to NATS, or JetStream refuses something, and what a person can
// do. The only place that turns errors of Node and of the client into words. Their raw texts name neither
// cause nor cure.

import { codeOf, messageOf } from '../../std/gateway-error.ts'
import { networkFault } from '../../std/network-faults/network-faults.ts'
import { quote } from '../../std/quote.ts'
import { bridgePlace } from '../bridges/bridge-address.ts'
import { urlsText } from './nats-address.ts'
import { NotConnected } from './nats-connection.ts'
import { mqttStream, type JetStreamOptions } from './types.ts'

/** Stable codes: why there is no connection, or none that is of use. */
export type NatsLossReason =
  | 'unreachable'
  | 'tls_failed'
  | 'not_nats'
  | 'refused'
  | 'permission_denied'
  | 'no_jetstream'
  | 'not_found'
  | 'not_ready'
  | 'connection_lost'
  | 'silent'

/** `detail` and `act` are sentences. `isRefused`: nothing listens there, as while a server restarts. */
export type NatsFault = { reason: NatsLossReason; detail: string; act: string; isRefused?: boolean }

type Place = Pick<JetStreamOptions, 'addresses' | 'tls' | 'userName' | 'stream' | 'prefix'>
type Row = readonly [pattern: RegExp, fault: (place: Place, error: unknown) => Omit<NatsFault, 'isRefused'>]

/** JetStream says so in its answers (err_code). */
export const notFound = { stream: 10059, consumer: 10014, message: 10037 } as const
export const wrongLastSequence: readonly number[] = [10071, 10164]

const closedCode =
  /^(ConnectionError|ClosedConnectionError|DrainingConnectionError|RequestError|ECONNRESET|EPIPE|CLOSED)$/
const timeoutCode = /^(TimeoutError|TIMEOUT|ETIMEDOUT)$/

const usualPorts = 'NATS usually has 4222; 1883 is its port for MQTT, 8222 that for monitoring.'
const checkUrl = 'Check scheme, host and port in `url` of the bridge.'
const own = (place: Place) => urlsText(place)

/** By the code or the name of the error; the first match counts. */
const rows: readonly Row[] = [
  [
    /^NO_TLS$/,
    () => ({
      reason: 'tls_failed',
      detail: 'NATS offers no TLS there.',
      act: 'Use nats:// where no TLS is wanted, or configure `tls` in nats-server.',
    }),
  ],
  [
    /^NEEDS_TLS$/,
    () => ({
      reason: 'tls_failed',
      detail: 'NATS requires TLS there.',
      act: 'Use nats+tls:// in `url` of the bridge.',
    }),
  ],
  [
    /^NOT_NATS$/,
    (place) => ({
      reason: 'not_nats',
      detail: `What answers on ${own(place)} is not NATS.`,
      act: `${checkUrl} ${usualPorts}`,
    }),
  ],
  [
    /^CLOSED_BEFORE_LOGIN$/,
    (place) => ({
      reason: 'unreachable',
      detail: `The connection to ${own(place)} was closed before NATS accepted the client.`,
      act: `Nothing, if NATS is starting or stopping. Otherwise: ${checkUrl} ${usualPorts}${certificateHint(place)}`,
    }),
  ],
  [
    /^(AuthorizationError|UserAuthenticationExpiredError)$/,
    ({ userName }) => ({
      reason: 'refused',
      detail: `NATS refuses ${userName === null ? 'a client without a user' : `the user ${quote(userName, 64)}`}.`,
      act: 'Check `username` and `password` (or `token`) of the bridge against `authorization` or `accounts` of nats-server.',
    }),
  ],
  [
    /^PermissionViolationError$/,
    (_place, error) => ({
      reason: 'permission_denied',
      detail: `The user may not ${permissionText(error)}.`,
      act:
        'Allow its user in nats-server: publish to "$JS.API.>", "$JS.ACK.>" and "$KV.>", subscribe to "_INBOX.>" and ' +
        '"$KV.>". docs/engines.md has the whole list.',
    }),
  ],
  [
    /^(JetStreamNotEnabled|10039|10076|NoRespondersError|NoResponders)$/,
    () => ({
      reason: 'no_jetstream',
      detail: 'JetStream does not answer in this account.',
      act:
        'Enable it in nats-server (`jetstream { store_dir: "/var/lib/nats" }`) and, where there are accounts, in that of ' +
        'the user (`accounts { NAME { jetstream: enabled } }`), which must be the account of the devices. During an ' +
        'election it does not answer for some seconds, either.',
    }),
  ],
  [
    /^10059$/,
    ({ stream }) => ({
      reason: 'not_found',
      detail: `There is no stream ${stream} in the account of the user.`,
      act:
        stream === mqttStream
          ? 'NATS creates it when the first MQTT client of the account connects: check `mqtt` in nats-server and the ' +
            'account of the devices. Set `provision: true` to create it before.'
          : `Create it (nats stream add ${stream}), or correct \`stream\` of the bridge.`,
    }),
  ],
  [
    /^BUCKET_MISSING$/,
    ({ prefix }) => ({
      reason: 'not_found',
      detail: `The bucket ${prefix}-members does not exist, in which the gateways agree on the partitions.`,
      act: `Run: nats kv add ${prefix}-members --replicas=3. Or set provision: true.`,
    }),
  ],
  [
    /^(10008|10010|10118|10009|TimeoutError|TIMEOUT)$/,
    () => ({
      reason: 'not_ready',
      detail: 'NATS did not answer in time: a node is down, or its cluster has no leader now.',
      act: 'Check /healthz of all nodes (nats server report jetstream). The bridge tries again; an election takes seconds.',
    }),
  ],
  [
    closedCode,
    (place) => ({
      reason: 'connection_lost',
      detail: 'The connection was closed by NATS or the network.',
      act:
        'Nothing, if the bridge connects again. If it repeats, look into the log of nats-server.' +
        certificateHint(place),
    }),
  ],
]

/** The network may drop the words of NATS with the connection. */
function certificateHint({ tls }: Place): string {
  const mayNeedOne = tls !== null && tls.cert === null
  return mayNeedOne ? ' If NATS asks for a certificate, set `tls.cert` and `tls.key`.' : ''
}

export function natsFault(thrown: unknown, place: Place): NatsFault {
  const isConnecting = thrown instanceof NotConnected
  const error = isConnecting ? thrown.cause : thrown
  const code = isConnecting ? connectingCode(codeText(error)) : codeText(error)
  const found =
    rows.find(([pattern]) => pattern.test(code))?.[1](place, error) ?? ofNetwork(code, error, place)
  const isRefused = code === 'ECONNREFUSED'
  if (found !== null) return { ...found, isRefused }
  return {
    reason: 'connection_lost',
    detail: `NATS reports ${quote(messageOf(error), 200)}${/^\w{3,40}$/.test(code) ? ` (${code})` : ''}.`,
    act: 'Look into the log of nats-server.',
  }
}

function ofNetwork(code: string, error: unknown, place: Place): Omit<NatsFault, 'isRefused'> | null {
  const host = place.addresses.map((address) => address.host).join(', ')
  const where = { peer: 'NATS', host, address: own(place), ports: usualPorts }
  const fault = networkFault(error, bridgePlace(where, place.tls), { code })
  if (fault === null) return null
  const reason = /^(tls|clock)$/.test(fault.reason) ? 'tls_failed' : 'unreachable'
  return { reason, detail: `${fault.why} (${fault.tried || code}).`, act: fault.act + certificateHint(place) }
}

/** The same end has another cause before NATS has accepted the client. */
function connectingCode(code: string): string {
  if (closedCode.test(code)) return 'CLOSED_BEFORE_LOGIN'
  return timeoutCode.test(code) ? 'ETIMEDOUT' : code
}

/** The number that JetStream gives its answer; null for any other error. */
export function apiCode(error: unknown): number | null {
  const { name, code } = (error ?? {}) as { name?: unknown; code?: unknown }
  const isAnswer =
    name === 'JetStreamApiError' || name === 'StreamNotFoundError' || name === 'ConsumerNotFoundError'
  return isAnswer && typeof code === 'number' ? code : null
}

/** It does not get better by itself within a second. */
export function isPermanent(error: unknown): boolean {
  return apiCode(error) !== null || nameOf(error) === 'PermissionViolationError'
}

/** The most telling of code, cause and name. */
function codeText(error: unknown): string {
  const api = apiCode(error)
  if (api !== null) return String(api)
  const text = messageOf(error)
  if (text === "server does not support 'tls'" || /tls.*is not available/.test(text)) return 'NO_TLS'
  if (/unexpected response from server|Unexpected token|is not valid JSON/.test(text)) return 'NOT_NATS'
  // The client reads the TLS options of a connection that has none.
  if (/property '(certFile|caFile)'/.test(text)) return 'NEEDS_TLS'
  const { cause } = (error ?? {}) as { cause?: unknown }
  for (const one of [error, cause]) {
    const code = codeOf(one)
    if (typeof code === 'string') return code
  }
  if (nameOf(cause) === 'PermissionViolationError' || nameOf(cause) === 'AuthorizationError')
    return nameOf(cause)
  return nameOf(error)
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : ''
}

function permissionText(error: unknown): string {
  const text = `${messageOf(error)} ${messageOf((error as { cause?: unknown } | null)?.cause)}`
  const found = /Permissions Violation for (Publish|Subscription) to "([^"]{1,200})"/i.exec(text)
  if (found === null) return 'do what the bridge needs'
  return `${found[1] === 'Publish' ? 'publish' : 'subscribe'} to ${quote(found[2]!, 200)}`
}
