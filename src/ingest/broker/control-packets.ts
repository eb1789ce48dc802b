// control-packets.ts: SUBSCRIBE, UNSUBSCRIBE, PUBREL, PINGREQ and DISCONNECT, before aedes sees them. What
// was read before DISCONNECT is acknowledged; the connection closes then.
//
// The gateway sends nothing to devices but rebirth requests of Sparkplug (command-topics.ts). Many devices
// subscribe to a topic for commands right after CONNECT, and some connect again without end when that is
// refused. So by default a subscription is granted with the QoS that it asks for, and nothing else of it is
// kept: whatever a client subscribes to costs its answer only.

import type { ClientDropReason } from './client-faults.ts'
import type { ParsedPacket } from './aedes-internals.ts'
import type { CommandedGate, CommandTopics } from './command-topics.ts'
import { filterProblem } from './topic-rules.ts'

export type ControlPackets<Gate> = {
  /** Whether it has dealt with the packet, which aedes must not see then. */
  take(gate: Gate, packet: ParsedPacket): boolean
  counters(): { subscriptions: number; subscriptionsRefused: number }
}

type ControlledGate = CommandedGate & {
  drop(reason: ClientDropReason, detail?: string): void
  ping(): void
}

export type Subscriptions = 'accept' | 'refuse'

const subackHead = 0x90
const unsubackHead = 0xb0
/** [MQTT-3.9.3-2] */
const refused = 0x80

type TakenPacket = Extract<
  ParsedPacket,
  { cmd: 'subscribe' | 'unsubscribe' | 'pubrel' | 'pingreq' | 'disconnect' }
>
/** aedes knows the others. */
const taken = new Set(['subscribe', 'unsubscribe', 'pubrel', 'pingreq', 'disconnect'])

function isTaken(packet: ParsedPacket): packet is TakenPacket {
  return taken.has(packet.cmd)
}

type FiltersPacket = Extract<ParsedPacket, { cmd: 'subscribe' | 'unsubscribe' }>

/** `release`: a client has released a message of QoS 2. `commands`: hears of granted subscriptions. */
export function createControlPackets<Gate extends ControlledGate>(
  {
    release,
    commands,
    leave,
  }: {
    release: (gate: Gate, messageId: number) => void
    commands: Pick<CommandTopics, 'subscribed' | 'unsubscribed'>
    /** It has sent DISCONNECT. */
    leave: (gate: Gate) => void
  },
  { subscriptions }: { subscriptions: Subscriptions },
): ControlPackets<Gate> {
  const counts = { subscriptions: 0, subscriptionsRefused: 0 }
  return { take, counters: () => ({ ...counts }) }

  function take(gate: Gate, packet: ParsedPacket): boolean {
    const { cmd } = packet
    // PUBACK, PUBREC and PUBCOMP answer nothing that the gateway has sent.
    if (!isTaken(packet)) return false
    // What followed DISCONNECT or a fault in the same portion.
    if (gate.closed) return true
    if (cmd === 'pingreq') gate.ping()
    else if (cmd === 'disconnect') leave(gate)
    else if (cmd === 'pubrel') release(gate, packet.messageId)
    else answerFilters(gate, packet)
    return true
  }

  function answerFilters(gate: ControlledGate, packet: FiltersPacket): void {
    const { cmd, messageId } = packet
    const filters =
      cmd === 'subscribe' ? packet.subscriptions.map(({ topic }) => topic) : packet.unsubscriptions
    const problem = firstProblem(filters)
    if (problem !== null) {
      gate.drop('bad_topic_filter', `Its ${cmd.toUpperCase()} has a topic filter that ${problem}.`)
      return
    }
    const granted = cmd === 'subscribe' ? grantedOf(packet.subscriptions) : []
    gate.write(answer(cmd === 'subscribe' ? subackHead : unsubackHead, messageId, granted))
    if (cmd === 'unsubscribe') commands.unsubscribed(gate, filters)
    else if (subscriptions === 'accept') commands.subscribed(gate, filters)
  }

  /** The QoS of each filter, in their order [MQTT-3.8.4-5]. */
  function grantedOf(asked: readonly { qos: number }[]): readonly number[] {
    const isAccepted = subscriptions === 'accept'
    counts[isAccepted ? 'subscriptions' : 'subscriptionsRefused'] += asked.length
    return asked.map(({ qos }) => (isAccepted ? qos : refused))
  }
}

function firstProblem(filters: readonly string[]): string | null {
  for (const filter of filters) {
    const problem = filterProblem(filter)
    if (problem !== null) return problem
  }
  return null
}

/** SUBACK (MQTT 3.9) and UNSUBACK (MQTT 3.11). */
function answer(head: number, messageId: number, codes: readonly number[]): Buffer {
  const length: number[] = []
  for (let rest = codes.length + 2; rest > 0; rest >>= 7)
    length.push((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0))
  return Buffer.from([head, ...length, messageId >> 8, messageId & 0xff].concat(codes))
}
