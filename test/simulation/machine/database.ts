// database.ts: the content of a simulated LevelDB, with the rules of one on a disk: a write is atomic; with
// `sync` it is durable when it ends; of those without, a power cut takes any number of the last. After a
// failed write the handle accepts further writes and loses them at the next opening.
//
// The content belongs to the directory, as files do: it moves with it, hides with its mount, and another
// directory in its place is another database (node/level.ts).

import type { Random } from '../../support/random.ts'

export type WriteOp = { type: 'put'; key: Buffer; value: Buffer } | { type: 'del'; key: Buffer }

/** What a key had before a write that is not durable. */
type Undo = { name: string; value: Buffer | undefined }

export class Database {
  /** Of the process that has it open. */
  lockedBy: number | null = null
  manifest = 0
  bytes = 0
  private names: string[] = []
  private readonly values = new Map<string, Buffer>()
  /** Of each write since the last durable one. */
  private unsynced: Undo[][] = []
  /** Of the last durable write. */
  private last: Undo[] = []
  /** Since a failed write: what comes after is lost at the next opening. */
  private lostFrom: number | null = null
  /** Blocks that cannot be read. */
  private readonly damaged = new Set<string>()

  apply(ops: readonly WriteOp[], isSync: boolean): void {
    const undo: Undo[] = []
    for (const op of ops) {
      const name = op.key.toString('latin1')
      undo.push({ name, value: this.values.get(name) })
      this.set(name, op.type === 'put' ? op.value : undefined)
    }
    this.unsynced.push(undo)
    if (!isSync || this.lostFrom !== null) return
    this.unsynced = []
    this.last = undo
  }

  /** The disk had confirmed the last durable write, and has not got it. False where there is none. */
  loseLast(): boolean {
    const { last } = this
    this.last = []
    for (const { name, value } of last.toReversed()) this.set(name, value)
    return last.length > 0
  }

  /** `reachesDisk`: the error came after the bytes. */
  failed(ops: readonly WriteOp[], reachesDisk: boolean): void {
    if (reachesDisk) this.apply(ops, true)
    this.lostFrom ??= this.unsynced.length
  }

  /** As an operator copies it, while nobody has it open. */
  copy(): Database {
    const copy = new Database()
    copy.manifest = this.manifest
    for (const name of this.names) copy.set(name, this.values.get(name))
    return copy
  }

  /** Of keys. */
  get size(): number {
    return this.names.length
  }

  opened(life: number): void {
    this.lockedBy = life
    if (this.lostFrom !== null) this.undoTo(this.lostFrom)
    this.lostFrom = null
    this.manifest += 1
  }

  processEnds(): void {
    this.lockedBy = null
  }

  switchOff(): void {
    this.names = []
    this.values.clear()
    this.unsynced = []
    this.last = []
  }

  powerCut(random: Random): void {
    this.lockedBy = null
    this.undoTo(random.below(this.unsynced.length + 1))
    this.unsynced = []
    this.lostFrom = null
  }

  get(name: string): Buffer | undefined {
    this.refuseDamaged([[Buffer.from(name, 'latin1')]])
    return this.values.get(name)
  }

  /** As a reader of the files finds it: it does not fail at a damaged block. */
  readable(key: Buffer): Buffer | undefined {
    const name = key.toString('latin1')
    return this.damaged.has(name) ? undefined : this.values.get(name)
  }

  /** A copy of a range in key order. */
  entries(
    gte: string,
    lt: string,
    { reverse, limit }: { reverse: boolean; limit: number },
  ): [Buffer, Buffer][] {
    const from = this.placeOf(gte)
    const to = this.placeOf(lt)
    const names = this.names.slice(
      reverse && limit >= 0 ? Math.max(from, to - limit) : from,
      !reverse && limit >= 0 ? Math.min(to, from + limit) : to,
    )
    if (reverse) names.reverse()
    return names.map((name) => [Buffer.from(name, 'latin1'), Buffer.from(this.values.get(name)!)])
  }

  /** A bit of a key flips: the value has another one, on the disk for good. False where that one has a value. */
  move(key: Buffer, newKey: Buffer): boolean {
    const [name, newName] = [key.toString('latin1'), newKey.toString('latin1')]
    const value = this.values.get(name)
    if (value === undefined || this.values.has(newName)) return false
    this.set(name, undefined)
    this.set(newName, value)
    return true
  }

  /** A bit of a value flips. */
  change(key: Buffer, value: Buffer): void {
    this.set(key.toString('latin1'), value)
  }

  /** A block of the disk rots: reading this key fails from now on. */
  damage(random: Random): string | null {
    if (this.names.length === 0) return null
    const name = random.pick(this.names)
    this.damaged.add(name)
    return name
  }

  refuseDamaged(entries: readonly (readonly [Buffer, ...unknown[]])[]): void {
    if (this.damaged.size > 0 && entries.some(([key]) => this.damaged.has(key.toString('latin1'))))
      throw Object.assign(new Error('Corruption: block checksum mismatch'), { code: 'LEVEL_CORRUPTION' })
  }

  private undoTo(length: number): void {
    for (const undo of this.unsynced.splice(length).reverse())
      for (const { name, value } of undo.reverse()) this.set(name, value)
  }

  private set(name: string, value: Buffer | undefined): void {
    const before = this.values.get(name)
    if (before !== undefined) this.bytes -= before.length + name.length
    if (value !== undefined) this.bytes += value.length + name.length
    if (value === undefined) {
      if (before === undefined) return
      this.values.delete(name)
      this.names.splice(this.placeOf(name), 1)
      return
    }
    if (before === undefined) this.names.splice(this.placeOf(name), 0, name)
    this.values.set(name, value)
    this.damaged.delete(name)
  }

  /** Of the first name that is not less. */
  private placeOf(name: string): number {
    let from = 0
    let to = this.names.length
    while (from < to) {
      const middle = (from + to) >> 1
      if (this.names[middle]! < name) from = middle + 1
      else to = middle
    }
    return from
  }
}
