// client-packets.ts: the packets of a client of MQTT 5 behind its CONNECT, without PUBLISH and PINGREQ:
// SUBSCRIBE, UNSUBSCRIBE, PUBREL and DISCONNECT. PUBACK, PUBREC and PUBCOMP answer nothing that the gateway
// has sent, and have no effect. packet-layout.ts has checked all of them before, texts and properties
// included.
//
// As with 3.1.1 (control-packets.ts) a subscription is granted by default and costs its answer only. A
// wildcard is granted too, although CONNACK announces none: Sparkplug nodes subscribe to one for their
// commands, and a refusal would make them connect again without end. A shared subscription is refused, since
// no message of it could ever be delivered.
//
// Retain handling, Retain As Published and No Local have no effect: neither a retained message nor a message
// of another client is ever sent.

import type { ClientDropReason } from '../client-faults.ts'
import type { CommandedGate, CommandTopics } from '../command-topics.ts'
import type { Subscriptions } from '../control-packets.ts'
import { filterProblem } from '../topic-rules.ts'
import { integerAt, integerSize, twoBytesAt } from './packet-bytes.ts'
import { clientProperties, propertyIds, propertyValueAt, sectionEnd } from './property-rules.ts'
import { reasonCode } from './reason-codes.ts'
import type { Version5 } from './version5.ts'

export type ClientPackets<Gate> = {
  /** Takes the whole packet at `start` of `bytes`; returns its end. */
  take(gate: Gate, bytes: Buffer, start: number): number
  counters(): { subscriptions: number; subscriptionsRefused: number }
}

type Version5Gate = CommandedGate & {
  readonly version5: Version5 | null
  drop(reason: ClientDropReason, detail: string, code: number): void
}

type Deps<Gate> = {
  /** A client has released a message of QoS 2. */
  release: (gate: Gate, messageId: number) => void
  /** It hears of granted subscriptions. */
  commands: Pick<CommandTopics, 'subscribed' | 'unsubscribed'>
  /** DISCONNECT came; `expiryMs` is null where it does not change the expiry of the session. */
  disconnected: (gate: Gate, disconnect: { code: number; expiryMs: number | null }) => void
}

const packetTypes = { pubrel: 6, subscribe: 8, unsubscribe: 10, disconnect: 14 } as const
const subackHead = 0x90
const unsubackHead = 0xb0
const sharedPrefix = '$share/'
const lengthBytesMax = 4
const neverExpires = 0xffff_ffff

export function createClientPackets<Gate extends Version5Gate>(
  { release, commands, disconnected }: Deps<Gate>,
  { subscriptions }: { subscriptions: Subscriptions },
): ClientPackets<Gate> {
  const isAccepting = subscriptions === 'accept'
  const counts = { subscriptions: 0, subscriptionsRefused: 0 }
  return { take, counters: () => ({ ...counts }) }

  function take(gate: Gate, bytes: Buffer, start: number): number {
    const body = start + 1 + integerSize(bytes, start + 1, start + 1 + lengthBytesMax)
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
    const { subscriptionIdentifier: id } = propertyIds
    const hasIdentifier = propertyValueAt(bytes, start + 2, end, id, clientProperties.subscribe) !== -1
    const granted: string[] = []
    const codes: number[] = []
    for (let at = sectionEnd(bytes, start + 2, end); at < end;) {
      const filterEnd = at + 2 + twoBytesAt(bytes, at)
      const filter = bytes.toString('utf8', at + 2, filterEnd)
      const code = hasIdentifier ? reasonCode.subscriptionIdsNotSupported : subscribeCode(filter)
      if (code === reasonCode.success) granted.push(filter)
      codes.push(code === reasonCode.success ? bytes[filterEnd]! & 0b11 : code)
      at = filterEnd + 1
    }
    counts.subscriptions += granted.length
    counts.subscriptionsRefused += codes.length - granted.length
    write(gate, answerOf(subackHead, twoBytesAt(bytes, start), codes))
    commands.subscribed(gate, granted)
  }

  function subscribeCode(filter: string): number {
    if (filterProblem(filter) !== null) return reasonCode.topicFilterNotValid
    if (filter.startsWith(sharedPrefix)) return reasonCode.sharedSubscriptionsNotSupported
    return isAccepting ? reasonCode.success : reasonCode.notAuthorized
  }

  function unsubscribe(gate: Gate, bytes: Buffer, start: number, end: number): void {
    const filters: string[] = []
    for (let at = sectionEnd(bytes, start + 2, end); at < end;) {
      const filterEnd = at + 2 + twoBytesAt(bytes, at)
      filters.push(bytes.toString('utf8', at + 2, filterEnd))
      at = filterEnd
    }
    write(gate, answerOf(unsubackHead, twoBytesAt(bytes, start), filters.map(unsubscribeCode)))
    commands.unsubscribed(gate, filters)
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

/** In a DISCONNECT with properties at `at`. Infinity for a session that never expires. */
function expiryOf(bytes: Buffer, at: number, end: number): number | null {
  const value = propertyValueAt(bytes, at, end, propertyIds.sessionExpiry, clientProperties.disconnect)
  if (value === -1) return null
  const seconds = bytes.readUInt32BE(value)
  return seconds === neverExpires ? Infinity : seconds * 1000
}

/** A packet that the client does not take is not sent, as if it was [MQTT-3.1.2-25]. */
function write(gate: Version5Gate, packet: Buffer): void {
  if (packet.length <= (gate.version5?.packetBytesMax ?? Infinity)) gate.write(packet)
}

/** SUBACK (3.9) and UNSUBACK (3.11), with one code for each filter, in their order, and no properties. */
function answerOf(head: number, messageId: number, codes: readonly number[]): Buffer {
  const length: number[] = []
  for (let rest = codes.length + 3; rest > 0; rest >>= 7)
    length.push((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0))
  return Buffer.from([head, ...length, messageId >> 8, messageId & 0xff, 0].concat(codes))
}
