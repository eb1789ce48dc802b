// bridge-check.ts: tries a bridge for `check --connect` and `doctor`, and consumes nothing. It connects as
// the bridge does, under a client id of its own: with that of the bridge the broker would end the connection
// of a running gateway. It subscribes without the share group and with Clean Session, so the broker hands
// nothing to it that a gateway misses, and keeps nothing after it. What arrives meanwhile is dropped without
// an acknowledgement.

import { randomBytes } from 'node:crypto'
import { TLSSocket } from 'node:tls'
import type { IConnackPacket } from 'mqtt-packet'
import { systemClock } from '../../std/clock.ts'
import { quote } from '../../std/quote.ts'
import { openAttempt, placeOf, type Attempt } from './bridge-attempt.ts'
import { bridgeOptions, type BridgeConfig } from './bridge-config.ts'
import { faultOf, supportFault, type Fault, type Granted } from './bridge-faults/bridge-faults.ts'
import { urlText } from './bridge-address.ts'
import type { BridgeOptions } from './types.ts'

export type BridgeFinding = {
  /** `warning`: it works, and messages can be lost. */
  state: 'ok' | 'warning' | 'failed'
  what: string
  why?: string
  act?: string
}

/** What an attempt found: the answers, or why there are none. */
type Tried =
  | {
      kind: 'granted'
      connack: IConnackPacket
      granted: readonly Granted[]
      validTo: string | null
      /** What the broker says of itself, by topic; empty where it does not. */
      said: ReadonlyMap<string, string>
    }
  | { kind: 'fault'; fault: Fault }

const stopped: Fault = { reason: 'unreachable', detail: 'The check was stopped.', act: 'Run it again.' }

const versionTopic = '$SYS/broker/version'
/** How many sessions have no client now. */
const absentTopic = '$SYS/broker/clients/disconnected'
/** After SUBACK. Mosquitto has them as retained messages. */
const saidMs = 100

/** For the broker to close the connection after DISCONNECT. */
const closeMs = 1000

/** Resolves with a finding in any case. `stop` ends the try. */
export async function checkBridge(config: BridgeConfig, stop: AbortSignal): Promise<BridgeFinding> {
  const bridge = bridgeOptions(config)
  const clientId = checkId(config)
  const asked = bridge.shareGroup === null ? [versionTopic] : [versionTopic, absentTopic]
  const tried = await tryOnce({ ...lookOptions(config), clientId, asked }, stop)
  const where = `${bridge.name}: ${urlText(bridge.url)}`
  const cannot = ({ detail, act }: Fault): BridgeFinding => ({
    state: 'failed',
    what: `${where} cannot be used.`,
    why: detail,
    act,
  })
  if (tried.kind === 'fault') return cannot(tried.fault)
  const missing = supportFault(tried.connack, bridge)
  return missing === null ? judged(where, bridge, tried) : cannot(missing)
}

/** The newest MQTT that the broker speaks, and the QoS that it grants; null where it does not answer. */
export async function abilitiesOf(
  config: BridgeConfig,
  stop: AbortSignal,
): Promise<{ protocol: 5 | '3.1.1'; qos: 0 | 1 } | null> {
  for (const protocol of [5, '3.1.1'] as const) {
    const options = lookOptions({ ...config, protocol })
    const tried = await tryOnce({ ...options, clientId: checkId(config), asked: [] }, stop)
    if (tried.kind === 'granted') return { protocol, qos: tried.granted.some(({ code }) => code > 0) ? 1 : 0 }
  }
  return null
}

function checkId({ client_id }: BridgeConfig): string {
  return `${client_id}-check-${randomBytes(2).toString('hex')}`
}

/** A window of one message: the broker sends no second one. */
function lookOptions(config: BridgeConfig): BridgeOptions {
  return {
    ...bridgeOptions(config),
    keepsSession: false,
    shareGroup: null,
    retained: 'ignore',
    window: 1,
  }
}

/** `asked`: topics that the broker has of itself; asked for where it grants everything. */
async function tryOnce(
  options: BridgeOptions & { clientId: string; asked: readonly string[] },
  stop: AbortSignal,
): Promise<Tried> {
  const clock = systemClock
  const now = { ...options, isCheck: true }
  const said = new Map<string, string>()
  const { promise, resolve } = Promise.withResolvers<Tried>()
  const failed = (fault: Fault) => resolve({ kind: 'fault', fault })
  const onAbort = () => failed(stopped)
  let attempt: Attempt<null> | null = null
  let answered = () => {}
  stop.addEventListener('abort', onAbort, { once: true })
  if (stop.aborted) onAbort()
  try {
    const made = openAttempt<null>(
      {
        clock,
        partition: null,
        room: () => 1,
        take(_attempt, { topic, bytes }) {
          if (!options.asked.includes(topic)) return
          said.set(topic, quote(bytes.toString('utf8', 0, 60), 60).slice(1, -1))
          if (said.size === options.asked.length) answered()
        },
        opened(connack, granted) {
          const validTo = made.socket instanceof TLSSocket ? made.socket.getPeerCertificate().valid_to : null
          answered = () => resolve({ kind: 'granted', connack, granted, validTo, said })
          if (options.asked.length === 0) return answered()
          made.client.subscribe([...options.asked], { qos: 0 }, () => {
            clock.after(saidMs, answered)
          })
          clock.after(5 * saidMs, answered)
        },
        // A broker may end the connection for the question: the answers count all the same.
        end: (_attempt, fault) => (made.openedAtMs === null ? failed(fault) : answered()),
      },
      now,
    )
    attempt = made
    return await promise
  } catch (error) {
    return { kind: 'fault', fault: faultOf(error, placeOf(now)) }
  } finally {
    stop.removeEventListener('abort', onAbort)
    if (attempt !== null) disconnect(attempt)
  }
}

/** With DISCONNECT where it is open, or the broker would log a lost connection. */
function disconnect(attempt: Attempt<null>): void {
  attempt.ended = true
  attempt.client.end(attempt.openedAtMs === null)
  setTimeout(() => attempt.socket.destroy(), closeMs).unref()
}

function judged(
  where: string,
  { qos, isVersion5, shareGroup, keepsSession }: BridgeOptions,
  { granted, validTo, said }: Extract<Tried, { kind: 'granted' }>,
): BridgeFinding {
  const mqtt = isVersion5 ? 'MQTT 5' : 'MQTT 3.1.1'
  const until = validTo === null ? '' : `, its certificate is valid until ${validTo}`
  const what = `${where} accepts the connection (${mqtt})${until}`
  const low = granted.filter(({ code }) => code < qos).map(({ filter }) => filter)
  if (low.length > 0)
    return {
      state: 'warning',
      what: `${what}, and grants only QoS 0 for ${low.join(', ')}.`,
      why: 'With QoS 0 it delivers no message again, and queues none while the gateway is away.',
      act: 'Allow QoS 1 at the broker if messages must not be lost, or set qos: 0 to say that they may.',
    }
  const all = `${what}, and grants ${granted.map(({ filter, code }) => `QoS ${code} for ${filter}`).join(', ')}.`
  const mosquitto = /^mosquitto version (\d+\.\d+)/.exec(said.get(versionTopic) ?? '')?.[1]
  if (mosquitto === undefined) return { state: 'ok', what: all }
  const absent = absentText(said.get(absentTopic))
  if (shareGroup !== null && keepsSession && Number.parseFloat(mosquitto) <= 2)
    return {
      state: 'warning',
      what: `${all} It is Mosquitto ${mosquitto}.${absent}`,
      why:
        'It forgets shared subscriptions when it restarts, and drops what is published before the first member of the ' +
        'group has returned.',
      act: 'Where that matters, use one connection without share_group: plain subscriptions are kept.',
    }
  const hint = keepsSession
    ? `, which drops what a session queues beyond max_queued_messages (default 1000)`
    : ''
  return { state: 'ok', what: `${all} It is Mosquitto ${mosquitto}${hint}.${absent}` }
}

/** No broker of MQTT lists the members of a group. */
function absentText(count: string | undefined): string {
  if (count === undefined || !(Number(count) > 0)) return ''
  return (
    ` It has ${count === '1' ? 'a session' : `${count} sessions`} without a client now, of all its clients: a member of ` +
    'the group that is gone keeps its share there.'
  )
}
