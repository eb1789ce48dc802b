// client-records.ts: keeps what is known of clients on the disk, beside the device records: how the last
// connection of each ended, and who was refused and why. The broker owns it and says what changed; here it is
// written, and given back to the broker after a start.
//
//   key    21 | client id, or a null character and an address; nothing behind it: the process was alive
//   value  JSON (checked-json.ts): the format version, the client as the broker has it, the time of the write
//
// A client that is connected changes nothing for days: that its connection was open until the end is known by
// the last round of the process.
//
// Each round writes at most `recordsPerRound` clients, not synced. While the store cannot be used, nothing is
// taken from the broker, whose own bounds hold.

import type { CancelTimer, Clock, EpochMs } from '../std/clock.ts'
import type { StoreOp, StoreRange } from '../storage/storage.ts'
import { decodeChecked, encodeChecked } from './checked-json.ts'
import type { RecordsStore, WriterOptions } from './record-writer.ts'

/** The broker. `View`: its own, which is kept as JSON. */
export type ClientSource<View extends object> = {
  /** `view`: null for a client that was forgotten. */
  takeChanged(most: number): readonly { key: string; view: View | null }[]
  restore(clients: Iterable<{ key: string; view: View; savedAt: EpochMs }>): void
  forgetBefore(before: EpochMs): void
}

export type ClientRecords = {
  /** Resolves when the stored clients were read, or could not be read now. */
  start(): Promise<void>
  stop(deadline: AbortSignal): Promise<void>
}

type Deps<View extends object> = {
  clock: Clock
  store: RecordsStore
  source: ClientSource<View>
  knownTime: () => EpochMs | null
  isDiskLow: () => boolean
}

const table = 0x21
const version = 1
const range: StoreRange = { gte: Buffer.from([table]), lt: Buffer.from([table + 1]) }
const expireEveryRounds = 360

export function createClientRecords<View extends object>(
  { clock, store, source, knownTime, isDiskLow }: Deps<View>,
  options: Pick<WriterOptions, 'everyMs' | 'recordsPerRound' | 'retentionMs'>,
): ClientRecords {
  let cancel: CancelTimer = () => {}
  let running: Promise<void> = Promise.resolve()
  let restored = false
  let round = 0
  let stopped = false
  return {
    start() {
      running = run()
      return running
    },
    async stop(deadline) {
      stopped = true
      cancel()
      await running
      let written = restored ? options.recordsPerRound : 0
      while (written === options.recordsPerRound && !deadline.aborted) written = await write()
    },
  }

  /** Never rejects: `use` does not. */
  async function run(): Promise<void> {
    round += 1
    if (!restored) await restore()
    if (restored) await write()
    const now = round % expireEveryRounds === 0 ? knownTime() : null
    if (now !== null) source.forgetBefore(now - options.retentionMs)
    if (stopped) return
    cancel = clock.after(options.everyMs, () => {
      running = run()
    })
  }

  async function restore(): Promise<void> {
    const done = await store.use(async ({ pages }) => {
      let aliveAt = 0
      for await (const page of pages(range)) {
        const found = page.flatMap(([key, value]) => decode(key, value) ?? [])
        // It is the first of all.
        if (found[0]?.key === '') aliveAt = found.shift()!.savedAt
        const clients = found.map((one) => ({ ...one, savedAt: Math.max(one.savedAt, aliveAt) }))
        source.restore(clients as { key: string; view: View; savedAt: EpochMs }[])
      }
      return true
    })
    restored = done === true
  }

  /** Resolves with the number of clients. What could not be written is written with its next change. */
  async function write(): Promise<number> {
    if (isDiskLow()) return 0
    const changed = source.takeChanged(options.recordsPerRound)
    const savedAt = clock.now()
    const ops = [{ key: '', view: {} }, ...changed].map(({ key, view }): StoreOp => {
      const storeKey = Buffer.concat([Buffer.from([table]), Buffer.from(key)])
      if (view === null) return { type: 'del', key: storeKey }
      return { type: 'put', key: storeKey, value: encodeChecked([version, view, savedAt]) }
    })
    const written = await store.use(async (open) => {
      await open.write(ops, { sync: false })
      return true
    })
    return written === null ? 0 : changed.length
  }
}

/** Null for what is no client of this version. */
function decode(key: Buffer, value: Buffer): { key: string; view: object; savedAt: EpochMs } | null {
  const [found, view, savedAt] = (decodeChecked(value) ?? []) as [number?, object?, EpochMs?]
  const isClient = found === version && typeof view === 'object' && typeof savedAt === 'number'
  return isClient ? { key: key.toString('utf8', 1), view, savedAt } : null
}
