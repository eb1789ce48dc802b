// command-topics.ts: the filters on which a client of the broker takes commands of Sparkplug. The gateway
// serves no other subscription: a client gets rebirth requests for what it publishes itself, and nothing
// else.
//
// Bounds: `filtersMax` for each connection; further ones get no requests. They end with the connection: a
// client that returns must subscribe again, as Sparkplug demands.

import type { Sender } from '../../domain/message.ts'
import { topicFilterOf } from '../../mapping/mapping.ts'

export type CommandTopics = {
  subscribed(gate: CommandedGate, filters: readonly string[]): void
  unsubscribed(gate: CommandedGate, filters: readonly string[]): void
  /** Sends a PUBLISH with QoS 0 to the connection; false where it has not subscribed to the topic. */
  send(sender: Sender, topic: string, bytes: Buffer): boolean
}

export type CommandedGate = {
  readonly closed: boolean
  readonly sender: Sender | null
  /** Null for MQTT 3.1 and 3.1.1. */
  readonly version5: { readonly packetBytesMax: number } | null
  write(packet: Buffer): void
  readonly traffic: { subscriptions: number } | null
}

type Matches = (topic: string) => boolean
type Commanded = { gate: CommandedGate; filters: Map<string, Matches> }

const filtersMax = 16
const filterLengthMax = 1024
/** Of a filter that can match `spBv1.0/GROUP/NCMD/NODE`. */
const commandLevels = new Set(['NCMD', '+', '#'])
const publishHead = 0x30

export function createCommandTopics(): CommandTopics {
  const bySender = new WeakMap<Sender, Commanded>()
  return { subscribed, unsubscribed, send }

  function subscribed(gate: CommandedGate, filters: readonly string[]): void {
    if (gate.traffic !== null) gate.traffic.subscriptions += filters.length
    for (const filter of filters) {
      if (gate.sender === null || !canMatch(filter)) continue
      const commanded = bySender.get(gate.sender) ?? { gate, filters: new Map() }
      if (commanded.filters.size >= filtersMax) return
      const found = topicFilterOf(filter)
      if (found.kind !== 'filter') continue
      commanded.filters.set(filter, found.matches)
      bySender.set(gate.sender, commanded)
    }
  }

  function unsubscribed({ sender }: CommandedGate, filters: readonly string[]): void {
    const commanded = sender === null ? undefined : bySender.get(sender)
    for (const filter of filters) commanded?.filters.delete(filter)
  }

  function send(sender: Sender, topic: string, bytes: Buffer): boolean {
    const commanded = bySender.get(sender)
    if (commanded === undefined || commanded.gate.closed) return false
    for (const matches of commanded.filters.values())
      if (matches(topic))
        return write(commanded.gate, publishOf(topic, bytes, commanded.gate.version5 !== null))
    return false
  }
}

/** A packet that is larger than the client takes is not sent [MQTT-3.1.2-24]. */
function write(gate: CommandedGate, packet: Buffer): boolean {
  if (gate.version5 !== null && packet.length > gate.version5.packetBytesMax) return false
  gate.write(packet)
  return true
}

function canMatch(filter: string): boolean {
  return filter.length <= filterLengthMax && filter.split('/').some((level) => commandLevels.has(level))
}

/**
 * MQTT 3.3, with QoS 0: the specification of Sparkplug demands it of commands. MQTT 5 has properties:
 * none.
 */
function publishOf(topic: string, bytes: Buffer, isVersion5: boolean): Buffer {
  const name = Buffer.from(topic)
  const properties = Buffer.alloc(isVersion5 ? 1 : 0)
  const length: number[] = []
  for (let rest = name.length + 2 + properties.length + bytes.length; rest > 0; rest >>= 7)
    length.push((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0))
  const head = Buffer.from([publishHead, ...length, name.length >> 8, name.length & 0xff])
  return Buffer.concat([head, name, properties, bytes])
}
