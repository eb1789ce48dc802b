// body-slots.ts: the shared memory through which bodies reach the sender thread. A slot holds one body:
// written here, read there, used again for the next batch, so that nothing is allocated or copied between the
// threads.
//
// A slot is free when no socket can read it any more; the thread says when that is (sender-thread.ts). Slots
// of a thread that died are dropped, not used again.
//
// Bound: as many slots as submissions at once, each as large as the largest body it has held. The slots whose
// socket still holds them are as many as connections that are being closed.

export type BodySlot = { readonly memory: SharedArrayBuffer; readonly bytes: Buffer }

export type BodySlots = {
  take(bodyBytes: number): BodySlot
  giveBack(slot: BodySlot): void
}

/** Slots grow in steps, so that a slightly larger body needs no new one. */
const slotStepBytes = 64 * 1024

export function createBodySlots(): BodySlots {
  const free: BodySlot[] = []
  return {
    /** The slot that was returned last: its memory is most likely in the CPU cache. */
    take(bodyBytes) {
      const slot = free.pop()
      if (slot !== undefined && slot.bytes.length >= bodyBytes) return slot
      const memory = new SharedArrayBuffer(Math.ceil(bodyBytes / slotStepBytes) * slotStepBytes)
      return { memory, bytes: Buffer.from(memory) }
    },
    giveBack: (slot) => void free.push(slot),
  }
}
