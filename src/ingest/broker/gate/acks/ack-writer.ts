// ack-writer.ts: writes the acknowledgements without an object per message. The spool calls one function per
// message. The functions are reused; each is bound to a slot that names the packet it answers.

import { assert } from '../../../../std/assert.ts'
import type { GatewayError } from '../../../../std/gateway-error.ts'
import type { Ack } from '../../../../spool/spool.ts'

/** First byte of the packet that answers: for QoS 1 [MQTT 3.4], for QoS 2 [MQTT 3.5]. */
export const puback = 0x40
export const pubrec = 0x50

export type AckHead = typeof puback | typeof pubrec

type Slot<Gate> = { gate: Gate | null; head: AckHead; messageId: number; code: number; ack: Ack }

export type AckSlots<Gate> = {
  /** An ack with a reason code for one packet; to be called once. */
  take(gate: Gate, head: AckHead, messageId: number, code: number): Ack
}

type OnAck<Gate> = (
  gate: Gate,
  head: AckHead,
  messageId: number,
  code: number,
  fault: GatewayError | null,
) => void

/** Slots that are kept for reuse; more may be in use. */
const freeMax = 65_536

export function createAckSlots<Gate>(onAck: OnAck<Gate>): AckSlots<Gate> {
  const free: Slot<Gate>[] = []
  return { take }

  function take(gate: Gate, head: AckHead, messageId: number, code: number): Ack {
    const slot = free.pop() ?? newSlot()
    slot.gate = gate
    slot.head = head
    slot.messageId = messageId
    slot.code = code
    return slot.ack
  }

  function newSlot(): Slot<Gate> {
    const slot: Slot<Gate> = {
      gate: null,
      head: puback,
      messageId: 0,
      code: 0,
      ack(fault) {
        const { gate, head, messageId, code } = slot
        assert(gate !== null, 'an ack is given once')
        slot.gate = null
        if (free.length < freeMax) free.push(slot)
        onAck(gate, head, messageId, code, fault)
      },
    }
    return slot
  }
}

/** Gates with acks to write: once per socket and commit, right after the commit gave its last ack. */
export type AckWriter = { add(gate: { writeAcks(): void }): void }

export function createAckWriter(): AckWriter {
  let pending: { writeAcks(): void }[] = []
  return { add }

  function add(gate: { writeAcks(): void }): void {
    if (pending.length === 0) queueMicrotask(writeAll)
    pending.push(gate)
  }

  function writeAll(): void {
    const gates = pending
    pending = []
    for (const gate of gates) gate.writeAcks()
  }
}
