// broker-listener.ts: subscribes at a broker for a time. It leaves no session or subscription there.

import { connect, type IClientOptions } from 'mqtt'
import type { Clock } from '../std/clock.ts'
import { GatewayError, messageOf } from '../std/gateway-error.ts'
import { quote } from '../std/quote.ts'
import { shownUrl } from '../std/shown-url.ts'
import type { Secret } from '../std/secret.ts'
import type { Message, UserProperties } from '../domain/message.ts'

export type ListenOptions = {
  brokerUrl: string
  /** Topic filter. */
  filter: string
  clientId: string
  /** 4 is MQTT 3.1.1. */
  protocolVersion: 4 | 5
  username: string | undefined
  password: Secret | undefined
  /** PEM text of the certificate authorities for the broker. */
  ca: string | undefined
  forMs: number
}

export type ListenDeps = {
  clock: Clock
  /** Ends the listening early. */
  signal: AbortSignal
  onSubscribed: () => void
  onMessage: (message: Message) => void
}

/** Why listening ended. */
export type EndReason = 'time' | 'stopped' | 'lost'

const connectTimeoutMs = 10_000
/** SUBACK: 128 and above refuse (MQTT 3.9.3). */
const refusedFrom = 128

/**
 * Resolves when the time is over, `signal` aborts or the broker ends the connection. Rejects with
 * BROKER_UNREACHABLE when the connection fails, with SUBSCRIPTION_REFUSED when the broker refuses the
 * subscription.
 */
export async function listen(deps: ListenDeps, options: ListenOptions): Promise<EndReason> {
  const { clock, signal, onSubscribed, onMessage } = deps
  const { promise, resolve, reject } = Promise.withResolvers<EndReason>()
  const client = connect(options.brokerUrl, clientOptions(options))
  // Timers of the clock do not keep the process alive. This one does until the socket is open.
  const alive = setInterval(() => undefined, 2 ** 30)
  const sender = { clientId: options.clientId, userName: null, certificateName: null, identity: null }
  let subscribed = false
  let cancel = () => {}
  const onAbort = () => resolve('stopped')
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted) onAbort()
  client.on('connect', () => {
    client.subscribe(options.filter, { qos: 1 }, (error, granted) => {
      const refused = granted?.some(({ qos }) => qos >= refusedFrom) ?? false
      if (error || refused) {
        if (client.connected) reject(subscriptionRefused(options))
        return
      }
      subscribed = true
      cancel = clock.after(options.forMs, () => resolve('time'))
      onSubscribed()
    })
  })
  client.on('message', (topic, bytes, { qos, retain, dup, properties }) => {
    const userProperties = lastOfEach(properties?.userProperties)
    onMessage({ topic, bytes, qos, retain, dup, sender, arrivedAt: clock.now(), userProperties })
  })
  client.on('error', (error) => reject(unreachable(options, messageOf(error), error)))
  client.on('close', () =>
    subscribed ? resolve('lost') : reject(unreachable(options, 'it closed the connection')),
  )
  try {
    return await promise
  } finally {
    clearInterval(alive)
    cancel()
    signal.removeEventListener('abort', onAbort)
    client.removeAllListeners('message')
    client.end(true)
  }
}

function clientOptions({ clientId, protocolVersion, username, password, ca }: ListenOptions): IClientOptions {
  return {
    clientId,
    protocolVersion,
    // No session is left at the broker.
    clean: true,
    reconnectPeriod: 0,
    connectTimeout: connectTimeoutMs,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password: password.reveal() }),
    ...(ca === undefined ? {} : { ca }),
  }
}

/** As the mapping has them: the last value of a name. */
function lastOfEach(given: Readonly<Record<string, string | string[]>> = {}): UserProperties | null {
  const all = Object.entries(given)
  if (all.length === 0) return null
  const found = Object.create(null) as Record<string, string>
  for (const [name, values] of all) found[name] = (Array.isArray(values) ? values.at(-1) : values) ?? ''
  return found
}

/** CONNACK of MQTT 3.1.1 and of 5 (3.2.2): the login is wrong or missing, or the user may not connect. */
const loginRefused = new Set<unknown>([4, 5, 0x86, 0x87])

function unreachable(options: ListenOptions, why: string, cause?: unknown): GatewayError {
  if (loginRefused.has((cause as { code?: unknown } | undefined)?.code)) return notLoggedIn(options)
  return new GatewayError('BROKER_UNREACHABLE', {
    what: `Cannot subscribe at the broker ${shownUrl(options.brokerUrl)}.`,
    why: `${why.replace(/\.$/, '')}.`,
    act:
      'Check the address, the port, --username and --password-file, and for mqtts:// the certificate ' +
      'authority in --ca.',
    ...(cause === undefined ? {} : { cause }),
  })
}

function notLoggedIn({ brokerUrl, username, password }: ListenOptions): GatewayError {
  const given = username !== undefined || new URL(brokerUrl).username !== ''
  return new GatewayError('BROKER_UNREACHABLE', {
    what: `Cannot subscribe at the broker ${shownUrl(brokerUrl)}.`,
    why: given
      ? 'The broker refuses the user name or the password, or the user may not connect.'
      : 'The broker lets no client in without a user name and a password.',
    act: given
      ? password === undefined && new URL(brokerUrl).password === ''
        ? 'Pass the password: --password-file FILE.'
        : 'Check --username, the file of --password-file, and the access rules of the broker.'
      : 'Pass them: --username NAME --password-file FILE.',
  })
}

function subscriptionRefused({ brokerUrl, filter }: ListenOptions): GatewayError {
  return new GatewayError('SUBSCRIPTION_REFUSED', {
    what: `The broker ${shownUrl(brokerUrl)} refuses the subscription to ${quote(filter)}.`,
    why: 'Its access rules do not allow it. The broker inside a gateway sends no messages to clients.',
    act:
      'Use the broker of the provider, or narrow --topic to the topics that you may read. For the messages ' +
      'of a running gateway use `telemetry-gateway tap`.',
  })
}
