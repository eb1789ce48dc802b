// store-backpressure.ts: messages that have to be kept whole (as dead letters, in quarantine, for their
// expression) while the store for them is full and holds, and what the same connections sent behind them:
// acks keep their order within a connection [MQTT-4.6.0-2]. Other connections continue.
//
// They are mapped again when there is room, or when another mapping is in force, which may map them to
// payloads. A mapping must tolerate a second time anyway, since a device sends a message without an ack
// again.
//
// Bounds: a connection with 64 KiB of messages that wait is not read any more (`pausesSender`). At the bound
// of all of them, none of these connections is read, and one that adds another message is closed (HELD_FULL).
// Connections without a message that waits are always read. When a connection ends, its messages are
// forgotten: none of them was acknowledged, so the device still has them.

import type { EpochMs } from '../../std/clock.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import type { DropReason } from '../../domain/event.ts'
import type { FilledStore } from '../../domain/kept-store.ts'
import { clientNameOf, type Sender } from '../../domain/message.ts'
import type { MapResult } from '../../mapping/mapping.ts'
import type { Ack } from '../../spool/spool.ts'
import { storesOf } from '../remap/kept-message.ts'
import type { IntakeSpool, ReceivedMessage } from '../types.ts'
import { putWrites } from './state-writes.ts'
import { costOf, waitingCopy, type WaitingMessage, type WaitingOptions } from './waiting-messages.ts'

export type StoreBackpressure = {
  size(): number
  /** Some of the messages may continue. */
  canResume(): boolean
  /** Messages that were left to their devices, since the start. */
  returned(): number
  /** True where the message waits, or was dropped because its device does not send it again. */
  delays(message: ReceivedMessage, result: MapResult | null, ack: Ack | null): boolean
  /** A message of this connection waits, so whatever follows it must wait too. */
  holdsSender(sender: Sender): boolean
  /** So many messages of this connection wait that it must not be read. */
  pausesSender(sender: Sender): boolean
  /** Why the messages of this client wait, and since when; null where none does. */
  waitOf(client: Pick<Sender, 'clientId' | 'identity'>): StoreWait | null
  /** Another mapping is in force. */
  mappingChanged(): void
  /** Routes at most `most` messages, in order within each connection. */
  resume(most: number): void
  connectionEnded(sender: Sender): void
}

/** `since`: the first message of the connection that waits came then. */
export type StoreWait = { store: FilledStore; since: EpochMs }

type Deps = {
  now: () => EpochMs
  spool: Pick<IntakeSpool, 'isFull' | 'holds' | 'putState' | 'putLateState'>
  map: (message: ReceivedMessage) => MapResult
  route: (message: ReceivedMessage, result: MapResult, ack: Ack | null) => void
  drop: (reason: DropReason) => void
}

/** The messages of one connection; the first waits for `store`. */
type Waiting = StoreWait & { messages: WaitingMessage[]; bytes: number }

const senderBytesMax = 64 * 1024

export function createStoreBackpressure(
  { now, spool, map, route, drop }: Deps,
  options: WaitingOptions,
): StoreBackpressure {
  const lists = new Map<Sender, Waiting>()
  /** By the name of the client; of several connections, the latest. */
  const ofClients = new Map<string, Waiting>()
  /** How many of the lists wait for each store. */
  const waitingFor = new Map<FilledStore, number>()
  let size = 0
  let bytes = 0
  let returned = 0
  /** Some messages were not mapped by the mapping in force. */
  let mustMapAgain = false

  function delays(message: ReceivedMessage, result: MapResult | null, ack: Ack | null): boolean {
    const list = lists.get(message.sender)
    const store = list === undefined && result !== null ? storeThatHolds(message, result) : null
    if (list === undefined && store === null) return false
    // State that decoding changed is written with whatever comes next.
    putWrites(spool, result?.writes ?? [])
    if (list !== undefined) addBehind(list, message, ack)
    else if (store !== null) begin(store, message, ack)
    return true
  }

  /** The first store that has no room for what it would get; nothing of the message is stored then. */
  function storeThatHolds({ sender }: ReceivedMessage, result: MapResult): FilledStore | null {
    for (const { store, device } of storesOf(result))
      if (spool.holds(store, clientNameOf(sender), device)) return store
    return null
  }

  function begin(store: FilledStore, message: ReceivedMessage, ack: Ack | null): void {
    if (ack === null) drop(`${store}_full`)
    else if (isFull()) giveBack(ack)
    else {
      const list = { store, since: now(), messages: [], bytes: 0 }
      lists.set(message.sender, list)
      ofClients.set(clientNameOf(message.sender), list)
      countWaiting(store, 1)
      addBehind(list, message, ack)
    }
  }

  function addBehind(list: Waiting, message: ReceivedMessage, ack: Ack | null): void {
    if (isFull()) {
      if (ack === null) drop(`${list.store}_full`)
      else giveBack(ack)
      return
    }
    list.messages.push(waitingCopy(message, ack))
    list.bytes += costOf(message)
    size += 1
    bytes += costOf(message)
  }

  /** Its connection is closed: the device sends it again later. */
  function giveBack(ack: Ack): void {
    returned += 1
    ack(heldFull())
  }

  function resume(most: number): void {
    let left = most
    for (const [sender, list] of lists) {
      let taken = 0
      for (const { message, ack } of list.messages) {
        if (left === 0) break
        const result = map(message)
        const store = storeThatHolds(message, result)
        if (store !== null) {
          countWaiting(list.store, -1)
          countWaiting(store, 1)
          list.store = store
          break
        }
        route(message, result, ack)
        taken += 1
        left -= 1
        bytes -= costOf(message)
        list.bytes -= costOf(message)
      }
      size -= taken
      if (taken === list.messages.length) remove(sender, list)
      else if (taken > 0) list.messages = list.messages.slice(taken)
      if (left === 0) return
    }
    mustMapAgain = false
  }

  function connectionEnded(sender: Sender): void {
    const list = lists.get(sender)
    if (list === undefined) return
    remove(sender, list)
    size -= list.messages.length
    for (const { message, ack } of list.messages) {
      bytes -= costOf(message)
      if (ack === null) drop(`${list.store}_full`)
      else returned += 1
    }
  }

  function remove(sender: Sender, list: Waiting): void {
    lists.delete(sender)
    const name = clientNameOf(sender)
    if (ofClients.get(name) === list) ofClients.delete(name)
    countWaiting(list.store, -1)
  }

  function countWaiting(store: FilledStore, change: number): void {
    const count = (waitingFor.get(store) ?? 0) + change
    if (count === 0) waitingFor.delete(store)
    else waitingFor.set(store, count)
  }

  function isFull(): boolean {
    return size >= options.messagesMax || bytes >= options.bytesMax
  }

  function hasRoom(): boolean {
    for (const store of waitingFor.keys()) if (!spool.isFull(store)) return true
    return false
  }

  return {
    size() {
      return size
    },
    canResume() {
      return size > 0 && (mustMapAgain || hasRoom())
    },
    returned() {
      return returned
    },
    delays,
    holdsSender: (sender) => lists.has(sender),
    pausesSender(sender) {
      const list = lists.get(sender)
      return list !== undefined && (list.bytes >= senderBytesMax || isFull())
    },
    waitOf: (client) => ofClients.get(clientNameOf(client)) ?? null,
    mappingChanged() {
      mustMapAgain = true
    },
    resume,
    connectionEnded,
  }
}

function heldFull(): GatewayError {
  return new GatewayError('HELD_FULL', {
    what: 'The connection is closed.',
    why: 'Its message has to wait, and the messages that wait have reached their limit in memory.',
    act: 'See the condition that says which store is full. The device sends the message again.',
  })
}
