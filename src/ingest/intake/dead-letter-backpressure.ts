// dead-letter-backpressure.ts: messages that would become dead letters while those are full, and what the
// same connections sent behind them: acks keep their order within a connection [MQTT-4.6.0-2]. Other
// connections continue.
//
// They are mapped again when there is room, or when another mapping is in force, which may map them to
// payloads. A mapping must tolerate a second time anyway, since a device sends a message without an ack
// again.
//
// Bounds: the broker limits the messages of a connection without an ack, and at the bounds here no socket is
// read. When a connection ends, its messages are forgotten: none of them was acknowledged, so the device
// still has them.

import type { DropReason } from '../../domain/event.ts'
import type { Sender } from '../../domain/message.ts'
import type { MapResult } from '../../mapping/mapping.ts'
import type { Ack } from '../../spool/spool.ts'
import type { IntakeSpool, ReceivedMessage } from '../types.ts'
import { costOf, waitingCopy, type WaitingMessage, type WaitingOptions } from './waiting-messages.ts'

export type DeadLetterBackpressure = {
  readonly size: number
  readonly full: boolean
  /** Some of the messages may continue. */
  readonly canResume: boolean
  /** Messages that were left to their devices, since the start. */
  readonly returned: number
  /** True where the message waits, or was dropped because its device does not send it again. */
  delays(message: ReceivedMessage, result: MapResult | null, ack: Ack | null): boolean
  /** A message of this connection waits, so whatever follows it must wait too. */
  delaysSender(sender: Sender): boolean
  /** Another mapping is in force. */
  mappingChanged(): void
  /** Routes at most `most` messages, in order within each connection. */
  resume(most: number): void
  connectionEnded(sender: Sender): void
}

type Deps = {
  spool: Pick<IntakeSpool, 'deadLettersFull' | 'putState'>
  map: (message: ReceivedMessage) => MapResult
  route: (message: ReceivedMessage, result: MapResult, ack: Ack | null) => void
  drop: (reason: DropReason) => void
}

export function createDeadLetterBackpressure(
  { spool, map, route, drop }: Deps,
  options: WaitingOptions,
): DeadLetterBackpressure {
  const lists = new Map<Sender, WaitingMessage[]>()
  let size = 0
  let bytes = 0
  let returned = 0
  /** Some messages were not mapped by the mapping in force. */
  let mustMapAgain = false

  function delays(message: ReceivedMessage, result: MapResult | null, ack: Ack | null): boolean {
    const delayed = lists.has(message.sender)
    if (!delayed && (result?.kind !== 'unmappable' || !spool.deadLettersFull)) return false
    // State that decoding changed is written with whatever comes next.
    for (const { key, value } of result?.writes ?? []) spool.putState(key, value)
    if (ack === null && (!delayed || isFull())) drop('dead_letters_full')
    else add(message, ack)
    return true
  }

  function add(message: ReceivedMessage, ack: Ack | null): void {
    let list = lists.get(message.sender)
    if (list === undefined) {
      list = []
      lists.set(message.sender, list)
    }
    list.push(waitingCopy(message, ack))
    size += 1
    bytes += costOf(message)
  }

  function resume(most: number): void {
    let left = most
    for (const [sender, list] of lists) {
      let taken = 0
      for (const { message, ack } of list) {
        if (left === 0) break
        const result = map(message)
        if (result.kind === 'unmappable' && spool.deadLettersFull) break
        route(message, result, ack)
        taken += 1
        left -= 1
        bytes -= costOf(message)
      }
      size -= taken
      if (taken === list.length) lists.delete(sender)
      else if (taken > 0) lists.set(sender, list.slice(taken))
      if (left === 0) return
    }
    mustMapAgain = false
  }

  function connectionEnded(sender: Sender): void {
    const list = lists.get(sender) ?? []
    lists.delete(sender)
    size -= list.length
    for (const { message, ack } of list) {
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
      return size > 0 && (mustMapAgain || !spool.deadLettersFull)
    },
    get returned() {
      return returned
    },
    delays,
    delaysSender: (sender) => lists.has(sender),
    mappingChanged() {
      mustMapAgain = true
    },
    resume,
    connectionEnded,
  }
}
