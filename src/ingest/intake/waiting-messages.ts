// waiting-messages.ts: the messages that wait while the spool accepts none, in order of arrival. Their
// bytes are copied out of the socket's chunk: a view of 300 bytes would keep 64 KiB alive.

import { propertiesLength } from '../../domain/message.ts'
import type { Ack } from '../../spool/spool.ts'
import type { ReceivedMessage } from '../types.ts'

export type WaitingMessage = { message: ReceivedMessage; ack: Ack | null }

export type WaitingList = {
  size(): number
  /** At its bound in messages or bytes: the sockets are no longer read. What was read is still taken. */
  full(): boolean
  add(message: ReceivedMessage, ack: Ack | null): void
  take(): WaitingMessage | undefined
}

export type WaitingOptions = { messagesMax: number; bytesMax: number }

/** What a waiting message costs beside its bytes, topic and properties; an estimate, for the bound. */
const overheadBytes = 256

export function createWaitingList(options: WaitingOptions): WaitingList {
  let list: (WaitingMessage | undefined)[] = []
  let head = 0
  let bytes = 0

  function add(message: ReceivedMessage, ack: Ack | null): void {
    list.push(waitingCopy(message, ack))
    bytes += costOf(message)
  }

  function take(): WaitingMessage | undefined {
    const first = list[head]
    if (first === undefined) return undefined
    list[head] = undefined
    head += 1
    if (head === list.length) {
      list = []
      head = 0
    } else if (head > 4096 && head * 2 > list.length) {
      list = list.slice(head)
      head = 0
    }
    bytes -= costOf(first.message)
    return first
  }

  return {
    size() {
      return list.length - head
    },
    full() {
      return list.length - head >= options.messagesMax || bytes >= options.bytesMax
    },
    add,
    take,
  }
}

/** With all that its source uses again. */
export function waitingCopy(message: ReceivedMessage, ack: Ack | null): WaitingMessage {
  const { arrival, stored } = message
  const times = { ...(arrival && { arrival: { ...arrival } }), ...(stored && { stored: { ...stored } }) }
  return { message: { ...message, bytes: Buffer.from(message.bytes), ...times }, ack }
}

/** What a waiting message counts towards the bound. */
export function costOf(message: ReceivedMessage): number {
  return message.bytes.length + message.topic.length + propertiesLength(message) + overheadBytes
}
