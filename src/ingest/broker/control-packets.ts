// control-packets.ts: SUBSCRIBE, UNSUBSCRIBE, PUBREL and DISCONNECT of any version. PUBACK, PUBREC and
// PUBCOMP answer nothing that the gateway has sent, and have no effect. packets/ has checked all of them
// before, texts and properties included.
//
// The gateway sends nothing to devices but rebirth requests of Sparkplug (command-topics.ts). Many devices
// subscribe to a topic for commands right after CONNECT, and some connect again without end when that is
// refused. So by default a subscription is granted with the QoS that it asks for, and nothing else of it is
// kept: whatever a client subscribes to costs its answer only.
//
// MQTT 5 has an answer for each filter that is wrong, where 3.1.1 has only the end of the connection. A
// wildcard is granted there, too, although CONNACK announces none: Sparkplug nodes subscribe to one for their
// commands, and a refusal would make them connect again without end. A shared subscription is refused, since
// no message of it could ever be delivered. Retain handling, Retain As Published and No Local have no effect:
// neither a retained message nor a message of another client is ever sent.

import type { ClientDropReason } from './client-faults.ts'
import type { CommandedGate, CommandTopics } from './command-topics.ts'
import { integerAt, integerEnd, twoBytesAt } from './packets/packet-bytes.ts'
import { packetTypes } from './packets/packets.ts'
import { clientProperties, propertyIds, propertyValueAt, sectionEnd } from './packets/property-rules.ts'
import { filterProblem } from './topic-rules.ts'
import { reasonCode } from './version5/reason-codes.ts'
import type { Version5 } from './version5/version5.ts'

export type ControlPackets<Gate> = {
  /** Takes the whole packet at `start` of `bytes`; returns its end. */
  take(gate: Gate, bytes: Buffer, start: number): number
  counters(): { subscriptions: number; subscriptionsRefused: number }
}

type ControlledGate = CommandedGate & {
  readonly version5: Version5 | null
  drop(reason: ClientDropReason, detail: string, code?: number): void
}

/** DISCONNECT; `expiryMs`: null where it does not change the expiry of the session. */
export type Disconnect = { code: number; expiryMs: number | null }

type Deps<Gate> = {
  /** A client has released a message of QoS 2. */
  release: (gate: Gate, messageId: number) => void
  /** It hears of granted subscriptions. */
  commands: Pick<CommandTopics, 'subscribed' | 'unsubscribed'>
  disconnected: (gate: Gate, disconnect: Disconnect) => void
}

export type Subscriptions = 'accept' | 'refuse'

const subackHead = 0x90
const unsubackHead = 0xb0
const sharedPrefix = '$share/'
const neverExpires = 0xffff_ffff
/** SUBACK of 3.1.1 [MQTT-3.9.3-2]. */
const refused = 0x80

export function createControlPackets<Gate extends ControlledGate>(
  { release, commands, disconnected }: Deps<Gate>,
  { subscriptions }: { subscriptions: Subscriptions },
): ControlPackets<Gate> {
  const isAccepting = subscriptions === 'accept'
  const counts = { subscriptions: 0, subscriptionsRefused: 0 }
  return { take, counters: () => ({ ...counts }) }

  function take(gate: Gate, bytes: Buffer, start: number): number {
    const body = integerEnd(bytes, start + 1)
    const end = body + integerAt(bytes, start + 1)
    switch (bytes[start]! >> 4) {
      case packetTypes.pubrel:
        release(gate, twoBytesAt(bytes, body))
        break
      case packetTypes.subscribe:
        subscribe(gate, bytes, body, end)
        break
      case packetTypes.unsubscribe:
        unsubscribe(gate, bytes, body, end)
        break
      case packetTypes.disconnect:
        disconnect(gate, bytes, body, end)
        break
      default:
    }
    return end
  }

  function subscribe(gate: Gate, bytes: Buffer, start: number, end: number): void {
    const asked = filtersOf(gate, bytes, start, end, true)
    if (!mayAnswer(gate, 'SUBSCRIBE', asked)) return
    const codeOf = gate.version5 === null ? codeOf3 : codeOf5(bytes, start, end)
    const codes = asked.map(({ filter, options }) => codeOf(filter) ?? options & 0b11)
    const granted = asked.filter((_, index) => codes[index]! < refused).map(({ filter }) => filter)
    counts.subscriptions += granted.length
    counts.subscriptionsRefused += codes.length - granted.length
    answer(gate, subackHead, twoBytesAt(bytes, start), codes)
    commands.subscribed(gate, granted)
  }

  function codeOf3(): number | null {
    return isAccepting ? null : refused
  }

  /** Null: granted. */
  function codeOf5(bytes: Buffer, start: number, end: number): (filter: string) => number | null {
    const { subscriptionIdentifier: id } = propertyIds
    const hasIdentifier = propertyValueAt(bytes, start + 2, end, id, clientProperties.subscribe) !== -1
    return (filter) => {
      if (hasIdentifier) return reasonCode.subscriptionIdsNotSupported
      if (filterProblem(filter) !== null) return reasonCode.topicFilterNotValid
      if (filter.startsWith(sharedPrefix)) return reasonCode.sharedSubscriptionsNotSupported
      return isAccepting ? null : reasonCode.notAuthorized
    }
  }

  function unsubscribe(gate: Gate, bytes: Buffer, start: number, end: number): void {
    const asked = filtersOf(gate, bytes, start, end, false)
    if (!mayAnswer(gate, 'UNSUBSCRIBE', asked)) return
    // UNSUBACK of 3.1.1 has none.
    const codes = gate.version5 === null ? [] : asked.map(({ filter }) => unsubscribeCode(filter))
    answer(gate, unsubackHead, twoBytesAt(bytes, start), codes)
    commands.unsubscribed(
      gate,
      asked.map(({ filter }) => filter),
    )
  }

  /** Which filters a client has is not kept. */
  function unsubscribeCode(filter: string): number {
    if (filterProblem(filter) !== null) return reasonCode.topicFilterNotValid
    return isAccepting && !filter.startsWith(sharedPrefix)
      ? reasonCode.success
      : reasonCode.noSubscriptionExisted
  }

  function disconnect(gate: Gate, bytes: Buffer, start: number, end: number): void {
    const code = start === end ? reasonCode.success : bytes[start]!
    const expiryMs = end - start < 2 ? null : expiryOf(bytes, start + 1, end)
    if (expiryMs !== null && expiryMs > 0 && gate.version5?.request.sessionExpiryMs === 0) {
      const detail = 'Its DISCONNECT sets a session expiry, and its CONNECT had none [MQTT-3.14.2-2].'
      gate.drop('protocol_error', detail, reasonCode.protocolError)
      return
    }
    disconnected(gate, { code, expiryMs })
  }
}

type AskedFilter = { filter: string; options: number }

function filtersOf(
  { version5 }: ControlledGate,
  bytes: Buffer,
  start: number,
  end: number,
  hasOptions: boolean,
): AskedFilter[] {
  const asked: AskedFilter[] = []
  for (let at = version5 === null ? start + 2 : sectionEnd(bytes, start + 2, end); at < end;) {
    const filterEnd = at + 2 + twoBytesAt(bytes, at)
    const options = hasOptions ? bytes[filterEnd]! : 0
    asked.push({ filter: bytes.toString('utf8', at + 2, filterEnd), options })
    at = hasOptions ? filterEnd + 1 : filterEnd
  }
  return asked
}

/** Before MQTT 5 a filter that is wrong ends the connection. */
function mayAnswer(gate: ControlledGate, name: string, asked: readonly AskedFilter[]): boolean {
  if (gate.version5 !== null) return true
  for (const { filter } of asked) {
    const problem = filterProblem(filter)
    if (problem === null) continue
    gate.drop('bad_topic_filter', `Its ${name} has a topic filter that ${problem}.`)
    return false
  }
  return true
}

/** In a DISCONNECT with properties at `at`. Infinity for a session that never expires. */
function expiryOf(bytes: Buffer, at: number, end: number): number | null {
  const value = propertyValueAt(bytes, at, end, propertyIds.sessionExpiry, clientProperties.disconnect)
  if (value === -1) return null
  const seconds = bytes.readUInt32BE(value)
  return seconds === neverExpires ? Infinity : seconds * 1000
}

/**
 * SUBACK (3.9) or UNSUBACK (3.11), with one code for each filter, in their order [MQTT-3.8.4-5], and in
 * MQTT 5 no properties. A packet that the client does not take is not sent, as if it was [MQTT-3.1.2-25].
 */
function answer(gate: ControlledGate, head: number, messageId: number, codes: readonly number[]): void {
  const properties = gate.version5 === null ? [] : [0]
  const length: number[] = []
  for (let rest = codes.length + 2 + properties.length; rest > 0; rest >>= 7)
    length.push((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0))
  const fields = [head, ...length, messageId >> 8, messageId & 0xff, ...properties]
  const packet = Buffer.from(fields.concat(codes))
  if (packet.length <= (gate.version5?.packetBytesMax ?? Infinity)) gate.write(packet)
}
