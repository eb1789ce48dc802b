// dead-letter-backpressure.ts: messages that would become dead letters while those are full, and what the same connections sent behind
// them: acks keep their order within a connection [MQTT-4.6.0-2]. All other connections go on.
//
// They are mapped again when there is room, or when another mapping came into force, which may make no letters of them;
// a mapping must bear that anyway, since a device sends again what has no ack.
//
// Bound: the broker takes so many messages of a connection without an ack, and at the bounds here no socket is read any
// more. A connection that ends takes its messages along: none of them was acknowledged, so the device has them still.

import type { Message, Sender } from '../../domain/message.ts'
import type { MapResult } from '../../mapping/mapping.ts'
import type { Ack } from '../../spool/spool.ts'
import type { DropReason } from './dropped-messages.ts'
import type { IntakeSpool } from './intake.ts'
import { costOf, type Waiting, type WaitingOptions } from './waiting-messages.ts'

export type DeadLetterBackpressure = {
  readonly size: number
  readonly full: boolean
  /** Some of it may go on. */
  readonly canResume: boolean
  /** Messages that went back to their devices, since the start. */
  readonly returned: number
  /** True where the message has to wait: it was parked, or is lost where nobody would send it again. */
  delays(message: Message, result: MapResult | null, ack: Ack | null): boolean
  /** Something of this connection is parked: what follows stands behind it. */
  delaysSender(sender: Sender): boolean
  /** Another mapping is in force. */
  mappingChanged(): void
  /** Puts at most `most` messages where they belong, in order within each connection. */
  resume(most: number): void
  /** The connection has ended. */
  connectionEnded(sender: Sender): void
}

type Deps = {
  spool: Pick<IntakeSpool, 'deadLettersFull' | 'putState'>
  map: (message: Message) => MapResult
  put: (message: Message, result: MapResult, ack: Ack | null) => void
  drop: (reason: DropReason) => void
}

export function createDeadLetterBackpressure(
  { spool, map, put, drop }: Deps,
  options: WaitingOptions,
): DeadLetterBackpressure {
  const lists = new Map<Sender, Waiting[]>()
  let size = 0
  let bytes = 0
  let returned = 0
  /** Not everything was offered to the mapping in force. */
  let isMended = false

  function stops(message: Message, result: MapResult | null, ack: Ack | null): boolean {
    const holds = lists.has(message.sender)
    if (!holds && (result?.kind !== 'unmappable' || !spool.deadLettersFull)) return false
    // State that decoding changed goes to the disk with whatever comes next.
    for (const { key, value } of result?.writes ?? []) spool.putState(key, value)
    if (ack === null && (!holds || isFull())) drop('dead_letters_full')
    else add(message, ack)
    return true
  }

  function add(message: Message, ack: Ack | null): void {
    let list = lists.get(message.sender)
    if (list === undefined) {
      list = []
      lists.set(message.sender, list)
    }
    list.push({ message: { ...message, bytes: Buffer.from(message.bytes) }, ack })
    size += 1
    bytes += costOf(message)
  }

  function goOn(most: number): void {
    let left = most
    for (const [sender, list] of lists) {
      let taken = 0
      for (const { message, ack } of list) {
        if (left === 0) break
        const result = map(message)
        if (result.kind === 'unmappable' && spool.deadLettersFull) break
        put(message, result, ack)
        taken += 1
        left -= 1
        bytes -= costOf(message)
      }
      size -= taken
      if (taken === list.length) lists.delete(sender)
      else if (taken > 0) lists.set(sender, list.slice(taken))
      if (left === 0) return
    }
    isMended = false
  }

  function forget(sender: Sender): void {
    const gone = lists.get(sender) ?? []
    lists.delete(sender)
    size -= gone.length
    for (const { message, ack } of gone) {
      bytes -= costOf(message)
      if (ack === null) drop('dead_letters_full')
      else returned += 1
    }
  }

  function isFull(): boolean {
    return size >= options.messagesMax || bytes >= options.bytesMax
  }

  return {
    get size() {
      return size
    },
    get full() {
      return isFull()
    },
    get canResume() {
      return size > 0 && (isMended || !spool.deadLettersFull)
    },
    get returned() {
      return returned
    },
    delays: stops,
    delaysSender: (sender) => lists.has(sender),
    mappingChanged() {
      isMended = true
    },
    resume: goOn,
    connectionEnded: forget,
  }
}
