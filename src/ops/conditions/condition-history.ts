// condition-history.ts: conditions that were open and are not any more, for 30 days, and those that a person
// knows of: until a time they are not sent again, and lists say who said so.
//
//   key  23 | number (6 bytes)   a condition that was cleared: at most `pastMax`, the oldest go
//   key  24                      what is known, and until when
//
// Both are kept in the records database, not synced. While that is not open they are in memory, and are
// written when it is. What cannot be read is ignored: nothing depends on it.

import { z } from 'zod'
import type { Clock, EpochMs } from '../../std/clock.ts'
import { severities } from '../../domain/cause.ts'
import type { RecordsStore } from '../../device-records/device-records.ts'
import type { StoreOp } from '../../storage/storage.ts'

const pastSchema = z.object({
  code: z.string(),
  key: z.string().nullable(),
  severity: z.enum(severities),
  since: z.number(),
  clearedAt: z.number(),
  what: z.string(),
})
export type PastCondition = z.infer<typeof pastSchema>

const knownSchema = z.array(
  z.object({
    code: z.string(),
    key: z.string().nullable(),
    untilAt: z.number(),
    by: z.string(),
    saidAt: z.number(),
    /** How long it is known; null for a date, and as builds before this one wrote it. */
    lastsMs: z.number().nullable().default(null),
  }),
)
export type KnownCondition = z.infer<typeof knownSchema>[number]

export type ConditionHistory = {
  cleared(condition: Omit<PastCondition, 'clearedAt'>): void
  /** The newest first. */
  past(limit: number): { conditions: readonly PastCondition[]; more: boolean }
  /** Null: it is known no more. */
  know(
    of: Pick<KnownCondition, 'code' | 'key'>,
    known: Pick<KnownCondition, 'untilAt' | 'by' | 'lastsMs'> | null,
  ): void
  /** Null: nobody said so, or the time is over. */
  known(of: Pick<KnownCondition, 'code' | 'key'>): KnownCondition | null
  /** Reads what there is, if that has not worked so far. Does not wait. */
  restore(store: RecordsStore | null): void
  /** The same, and writes what changed. Never rejects. */
  save(store: RecordsStore | null): Promise<void>
}

const pastMax = 1000
const pastMs = 30 * 86_400_000
const knownMax = 200
const pastTable = 0x23
const knownKey = Buffer.from([0x24])

/** `ourNow`: the time of the gateway, in which a person says until when he knows of something. */
export function createConditionHistory({
  clock,
  ourNow,
}: {
  clock: Clock
  ourNow: () => EpochMs
}): ConditionHistory {
  /** The oldest first. */
  let past: (PastCondition & { number: number })[] = []
  let next = 0
  let unwritten: StoreOp[] = []
  let all = new Map<string, KnownCondition>()
  let isKnownChanged = false
  let isRead = false
  let isReading = false
  /** One at a time: what is read twice would be there twice. */
  let saving: Promise<void> = Promise.resolve()
  return {
    cleared(condition) {
      add({ ...condition, clearedAt: clock.now(), number: next })
    },
    past(limit) {
      const recent = past.filter(({ clearedAt }) => clock.now() - clearedAt < pastMs).reverse()
      const conditions = recent.slice(0, limit).map(({ number: _number, ...one }) => one)
      return { conditions, more: recent.length > limit }
    },
    know(of, known) {
      all.delete(nameOf(of))
      if (known !== null) all.set(nameOf(of), { ...of, ...known, saidAt: ourNow() })
      const [oldest] = all.keys()
      if (all.size > knownMax && oldest !== undefined) all.delete(oldest)
      isKnownChanged = true
    },
    known(of) {
      const found = all.get(nameOf(of))
      if (found === undefined) return null
      const now = ourNow()
      const latest = now + (found.lastsMs ?? Infinity)
      // No more is left than a person said: the clock was ahead then.
      if (found.untilAt > latest) {
        found.untilAt = latest
        isKnownChanged = true
      }
      return found.untilAt > now ? found : null
    },
    restore(store) {
      if (isRead || isReading || store === null) return
      isReading = true
      saving = saving.then(() => readFrom(store)).finally(() => (isReading = false))
    },
    save(store) {
      if (store !== null) saving = saving.then(() => saveTo(store))
      return saving
    },
  }

  async function readFrom(store: RecordsStore): Promise<void> {
    if (!isRead) isRead = (await store.use((open) => read(open.pages))) === true
  }

  async function saveTo(store: RecordsStore): Promise<void> {
    await readFrom(store)
    if (isRead) await write(store)
  }

  function add(condition: PastCondition & { number: number }): void {
    next = condition.number + 1
    past.push(condition)
    unwritten.push({ type: 'put', key: keyOf(condition.number), value: textOf(condition) })
    while (past.length > pastMax) unwritten.push({ type: 'del', key: keyOf(past.shift()!.number) })
    // As many as are kept are enough where nothing can be written.
    if (unwritten.length > 2 * pastMax) unwritten = unwritten.slice(-2 * pastMax)
  }

  async function read(pages: Parameters<Parameters<RecordsStore['use']>[0]>[0]['pages']): Promise<boolean> {
    const stored: typeof past = []
    for await (const page of pages({ gte: Buffer.from([pastTable]), lt: Buffer.from([knownKey[0]! + 1]) }))
      for (const [key, value] of page) {
        if (key[0] === pastTable) {
          const one = parsed(pastSchema, value)
          if (one !== null) stored.push({ ...one, number: key.readUIntBE(1, 6) })
        } else
          for (const one of parsed(knownSchema, value) ?? [])
            if (!all.has(nameOf(one))) all.set(nameOf(one), one)
      }
    // Those that were cleared before the stored ones were read follow them.
    const since = past
    past = stored
    unwritten = []
    next = (stored.at(-1)?.number ?? -1) + 1
    for (const one of since) add({ ...one, number: next })
    return true
  }

  async function write(store: RecordsStore): Promise<void> {
    const ops = unwritten
    const known: StoreOp[] = isKnownChanged
      ? [{ type: 'put', key: knownKey, value: textOf([...all.values()]) }]
      : []
    if (ops.length + known.length === 0) return
    unwritten = []
    isKnownChanged = false
    const written = await store.use(async (open) => {
      await open.write([...ops, ...known], { sync: false })
      return true
    })
    if (written !== null) return
    unwritten = [...ops, ...unwritten]
    isKnownChanged ||= known.length > 0
  }
}

function nameOf({ code, key }: Pick<KnownCondition, 'code' | 'key'>): string {
  return JSON.stringify([code, key])
}

function keyOf(number: number): Buffer {
  const key = Buffer.alloc(7)
  key[0] = pastTable
  key.writeUIntBE(number, 1, 6)
  return key
}

function textOf(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value))
}

function parsed<Schema extends z.ZodType>(schema: Schema, value: Buffer): z.infer<Schema> | null {
  try {
    return schema.parse(JSON.parse(value.toString()))
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof z.ZodError) return null
    throw error
  }
}
