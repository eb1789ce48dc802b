// field-records.ts: keeps on the disk which fields the devices of each source have, so that a field that is
// lost over a restart is noticed, too (mapping/lost-fields). The mapping owns it; here it is written two
// seconds after a change and at the stop, not synced, and given back after a start. While the database cannot
// be used, nothing is written, and it is tried again each second.
//
//   key    22 | name of the source
//   value  JSON (checked-json.ts): the format version, and the source as the mapping has it
//
// After a kill, what the last seconds changed is missing, and nothing else. How many records lie between two
// with a field is written every ten minutes: it is no more than a measure.

import type { CancelTimer, Clock } from '../std/clock.ts'
import type { StoreOp, StoreRange } from '../storage/storage.ts'
import { decodeChecked, encodeChecked } from './checked-json.ts'
import type { RecordsStore } from './record-writer.ts'

/** The mapping. */
export type FieldSource<Source extends { name: string }> = {
  /** Grows with each change that must not be lost. */
  changes(): number
  save(): readonly Source[]
  restore(sources: readonly Source[]): void
  isStored(value: unknown): value is Source
}

export type FieldRecords = {
  /** Never rejects. */
  start(): void
  stop(): Promise<void>
}

const table = 0x22
const version = 1
const range: StoreRange = { gte: Buffer.from([table]), lt: Buffer.from([table + 1]) }
const everyMs = 2000
/** Rounds after which all is written. */
const allEvery = 300
/** The store may not be open yet. */
const retryMs = 1000

export function createFieldRecords<Source extends { name: string }>(
  { clock, store, isDiskLow }: { clock: Clock; store: RecordsStore; isDiskLow: () => boolean },
  source: FieldSource<Source>,
): FieldRecords {
  let cancel: CancelTimer = () => {}
  let running: Promise<void> = Promise.resolve()
  let restored = false
  let stopped = false
  let round = 0
  /** Of the source, at the last write. */
  let writtenChanges = 0
  /** By key as text: what the disk has. */
  const written = new Map<string, string>()
  return {
    start() {
      running = run()
    },
    async stop() {
      stopped = true
      cancel()
      await running
      await write()
    },
  }

  async function run(): Promise<void> {
    round += 1
    const isDue = source.changes() !== writtenChanges || round % allEvery === 0
    if (!restored) await restore()
    else if (isDue) await write()
    if (stopped) return
    cancel = clock.after(restored ? everyMs : retryMs, () => {
      running = run()
    })
  }

  async function restore(): Promise<void> {
    const found: Source[] = []
    const done = await store.use(async ({ pages }) => {
      for await (const page of pages(range))
        for (const [key, value] of page) {
          written.set(key.toString('latin1'), value.toString())
          const one = decode(value)
          if (source.isStored(one)) found.push(one)
        }
      return true
    })
    if (done !== true || stopped) return
    restored = true
    source.restore(found)
  }

  /** What could not be written is written next time. */
  async function write(): Promise<void> {
    if (!restored || isDiskLow()) return
    const changes = source.changes()
    const now = new Map(
      source
        .save()
        .map((one) => [keyOf(one.name).toString('latin1'), encodeChecked([version, one]).toString()]),
    )
    // Nothing was seen yet: what the disk has is still to be taken over.
    if (now.size === 0) return
    const ops: StoreOp[] = []
    for (const [key, text] of now)
      if (written.get(key) !== text)
        ops.push({ type: 'put', key: Buffer.from(key, 'latin1'), value: Buffer.from(text) })
    for (const key of written.keys())
      if (!now.has(key)) ops.push({ type: 'del', key: Buffer.from(key, 'latin1') })
    writtenChanges = changes
    if (ops.length === 0) return
    const done = await store.use(async (open) => {
      await open.write(ops, { sync: false })
      return true
    })
    if (done !== true) {
      writtenChanges = 0
      return
    }
    written.clear()
    for (const [key, text] of now) written.set(key, text)
  }
}

function keyOf(name: string): Buffer {
  return Buffer.concat([Buffer.from([table]), Buffer.from(name)])
}

/** Null where the value was not written by this version of the format. */
function decode(value: Buffer): unknown {
  const [found, stored] = decodeChecked(value) ?? []
  return found === version ? stored : null
}
