// ack-writer.ts: acks on their way back, without an object per message. The spool calls a function per message; the
// functions are kept and used again, each bound to a slot that says which packet it answers.

import { assert } from '../../std/assert.ts'
import type { GatewayError } from '../../std/gateway-error.ts'
import type { Ack } from '../../spool/spool.ts'
import type { Gate } from './gate.ts'

/** First byte of the packet that answers: for QoS 1 [MQTT 3.4], for QoS 2 [MQTT 3.5]. */
export const puback = 0x40
export const pubrec = 0x50

export type AckHead = typeof puback | typeof pubrec

type Slot = { gate: Gate | null; head: AckHead; messageId: number; ack: Ack }

export type AckSlots = {
  /** An ack for one packet; to be called once. */
  take(gate: Gate, head: AckHead, messageId: number): Ack
}

type OnAck = (gate: Gate, head: AckHead, messageId: number, fault: GatewayError | null) => void

/** Slots that are kept for reuse; more may be in use. */
const freeMax = 65_536

export function createAckSlots(onAck: OnAck): AckSlots {
  const free: Slot[] = []

  function take(gate: Gate, head: AckHead, messageId: number): Ack {
    const slot = free.pop() ?? newSlot()
    slot.gate = gate
    slot.head = head
    slot.messageId = messageId
    return slot.ack
  }

  function newSlot(): Slot {
    const slot: Slot = {
      gate: null,
      head: puback,
      messageId: 0,
      ack(fault) {
        const { gate, head, messageId } = slot
        assert(gate !== null, 'an ack is given once')
        slot.gate = null
        if (free.length < freeMax) free.push(slot)
        onAck(gate, head, messageId, fault)
      },
    }
    return slot
  }

  return { take }
}

/** Gates with acks to write: once per socket and commit, right after the commit gave its last ack. */
export type AckWriter = { add(gate: Gate): void }

export function createAckWriter(): AckWriter {
  let dirty: Gate[] = []

  function add(gate: Gate): void {
    if (dirty.length === 0) queueMicrotask(flush)
    dirty.push(gate)
  }

  function flush(): void {
    const gates = dirty
    dirty = []
    for (const gate of gates) gate.writeAcks()
  }

  return { add }
}
