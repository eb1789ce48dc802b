// message-blocks.ts: the memory of the last messages of all devices (recent-messages.ts), in blocks of one
// size.
//
//   slab    256 blocks in one buffer, made when the first of them is taken
//   ring    of one device: blocks that are linked in a circle
//   free    blocks of rings that were dropped, linked one behind the other; they are taken first
//
// Blocks have one size, so that no memory is lost between them, and a ring that grows leaves nothing for the
// garbage collector: buffers that each device grows by itself were 40 MB of garbage with 10,000 devices.

/** Of one block. Whole numbers of 64 bits fit. */
export const blockBytes = 1024

const blocksOfSlab = 256
const blockShift = 8
const blockMask = blocksOfSlab - 1

export type MessageBlocks = {
  /** The number of a block that is linked to itself; -1 where `max` are in use. */
  take(): number
  /** Takes a block and links it behind `block`; false where `max` are in use. */
  takeBehind(block: number): boolean
  /** Of the whole circle. Its bytes are overwritten with zeros. */
  giveBack(block: number): void
  next(block: number): number
  slabOf(block: number): Slab
  /** Index of the first byte of the block in its slab. */
  offsetOf(block: number): number
  inUse(): number
}

/** Three views of the same memory. */
export type Slab = { readonly bytes: Buffer; readonly doubles: Float64Array; readonly integers: Int32Array }

type LinkedSlab = Slab & { readonly next: Int32Array }

/** `max`: blocks that are in use at the same time. */
export function createMessageBlocks(max: number): MessageBlocks {
  const slabs: LinkedSlab[] = []
  let made = 0
  let used = 0
  let firstFree = -1
  return { take, takeBehind, giveBack, next, slabOf, offsetOf, inUse: () => used }

  function take(): number {
    if (used >= max) return -1
    used += 1
    let block = firstFree
    if (block < 0) block = make()
    else firstFree = next(block)
    link(block, block)
    return block
  }

  function make(): number {
    if ((made & blockMask) === 0) slabs.push(newSlab())
    made += 1
    return made - 1
  }

  function takeBehind(block: number): boolean {
    const taken = take()
    if (taken < 0) return false
    link(taken, next(block))
    link(block, taken)
    return true
  }

  function giveBack(block: number): void {
    let last = block
    for (;;) {
      const offset = offsetOf(last)
      slabOf(last).bytes.fill(0, offset, offset + blockBytes)
      used -= 1
      if (next(last) === block) break
      last = next(last)
    }
    link(last, firstFree)
    firstFree = block
  }

  function next(block: number): number {
    return slabs[block >> blockShift]!.next[block & blockMask]!
  }

  function link(block: number, to: number): void {
    slabs[block >> blockShift]!.next[block & blockMask] = to
  }

  function slabOf(block: number): Slab {
    return slabs[block >> blockShift]!
  }

  function offsetOf(block: number): number {
    return (block & blockMask) * blockBytes
  }
}

function newSlab(): LinkedSlab {
  const bytes = Buffer.allocUnsafeSlow(blocksOfSlab * blockBytes)
  return {
    bytes,
    doubles: new Float64Array(bytes.buffer),
    integers: new Int32Array(bytes.buffer),
    next: new Int32Array(blocksOfSlab),
  }
}
