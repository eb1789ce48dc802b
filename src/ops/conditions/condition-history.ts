// condition-history.ts: conditions that were open and are not any more, for 30 days, and those that a person
// knows of: until a time they are not sent again, and lists say who said so.
//
// A stop of the gateway, a kill or a loss of the spool interrupts the conditions that are open:
//
//   holds again within two minutes of being ready   it goes on, with its first `since`
//   happened, and its time is not over              the same, at once: what is lost stays lost
//   else, or not at the next stop                   it is over, since the stop
//
//   key  23 | number (6 bytes)   a condition that was cleared: at most `pastMax`, the oldest go
//   key  24                      what is known, and until when
//   key  25                      those that are open, or interrupted: at most `openMax`
//
// Both are kept in the records database, not synced. While that is not open they are in memory, and are
// written when it is. What cannot be read is ignored: nothing depends on it.

import { z } from 'zod'
import type { Clock, EpochMs } from '../../std/clock.ts'
import { severities } from '../../domain/cause.ts'
import type { RecordsStore } from '../../device-records/device-records.ts'
import type { StoreOp } from '../../storage/storage.ts'

/** What ended while it was open: the gateway, or its spool alone. A boolean in builds before this one. */
const interrupted = z
  .union([z.enum(['stop', 'spool_lost']).nullable(), z.boolean().transform((is) => (is ? 'stop' : null))])
  .default(null)

const pastSchema = z.object({
  code: z.string(),
  key: z.string().nullable(),
  severity: z.enum(severities),
  since: z.number(),
  clearedAt: z.number(),
  what: z.string(),
  interrupted,
})
export type PastCondition = z.infer<typeof pastSchema>

const storedSchema = pastSchema.omit({ clearedAt: true, interrupted: true }).extend({
  /** What opens it again, where it is no state. */
  happened: z
    .object({
      why: z.string(),
      act: z.string(),
      lastAt: z.number(),
      count: z.number(),
      causes: z.array(z.string()),
    })
    .nullable(),
})
export type StoredCondition = z.infer<typeof storedSchema>

/** `at`: when they were written. `interruptedAt`: null for those that were open then. */
const openSchema = z.object({
  at: z.number(),
  conditions: z.array(storedSchema.extend({ interruptedAt: z.number().nullable(), interrupted })),
})

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

type Interrupted = StoredCondition & { interruptedAt: EpochMs } & Pick<PastCondition, 'interrupted'>

type Named = Pick<PastCondition, 'code' | 'key'>

export type ConditionHistory = {
  cleared(condition: Named & Pick<PastCondition, 'severity' | 'since' | 'what'>): void
  /** By a loss of the spool. */
  interrupted(condition: StoredCondition): void
  /** Since when a condition that is raised was open before it was interrupted; null: it was not. */
  resumed(of: Named & { continues: string | null }): EpochMs | null
  /** Those that are still interrupted are over, also those that are read only later. */
  settle(): void
  /** `isSure`: false while it may go on after a restart. Null: it is not known to have ended. */
  endOf(of: Named): { at: EpochMs; isSure: boolean } | null
  /** The newest first. */
  past(limit: number): { conditions: readonly PastCondition[]; more: boolean }
  /** Null: it is known no more. */
  know(of: Named, known: Pick<KnownCondition, 'untilAt' | 'by' | 'lastsMs'> | null): void
  /** Null: nobody said so, or the time is over. */
  known(of: Named): KnownCondition | null
  /** Reads what there is, if that has not worked so far. Does not wait. */
  restore(store: RecordsStore | null): void
  /** The same, and writes what changed. Never rejects. */
  save(store: RecordsStore | null): Promise<void>
}

/** The conditions that are open. */
type Register = { stored(): StoredCondition[]; resume(stored: StoredCondition): boolean }

const nothingOpen: Register = { stored: () => [], resume: () => false }

const pastMax = 1000
const openMax = 200
const pastMs = 30 * 86_400_000
const knownMax = 200
const pastTable = 0x23
const knownKey = Buffer.from([0x24])
const openKey = Buffer.from([0x25])

/** `ourNow`: the time of the gateway, in which a person says until when he knows of something. */
export function createConditionHistory({
  clock,
  ourNow,
  register = () => nothingOpen,
}: {
  clock: Clock
  ourNow: () => EpochMs
  register?: () => Register
}): ConditionHistory {
  /** The oldest first. */
  let past: (PastCondition & { number: number })[] = []
  let next = 0
  let unwritten: StoreOp[] = []
  let all = new Map<string, KnownCondition>()
  const interrupted = new Map<string, Interrupted>()
  let isKnownChanged = false
  let isRead = false
  let isSettled = false
  let isReading = false
  /** One at a time: what is read twice would be there twice. */
  let saving: Promise<void> = Promise.resolve()
  return {
    cleared({ code, key, severity, since, what }) {
      add({ code, key, severity, since, what, clearedAt: clock.now(), interrupted: null, number: next })
    },
    interrupted: (condition) =>
      interrupt({ ...condition, interruptedAt: clock.now(), interrupted: 'spool_lost' }),
    resumed({ code, key, continues }) {
      const before = continues === null ? undefined : interrupted.get(nameOf({ code: continues, key }))
      const own = interrupted.get(nameOf({ code, key }))
      interrupted.delete(nameOf({ code, key }))
      const since = Math.min(own?.since ?? Infinity, before?.since ?? Infinity)
      return since === Infinity ? null : since
    },
    settle,
    endOf(of) {
      const name = nameOf(of)
      const cut = interrupted.get(name)
      if (cut !== undefined) return { at: cut.interruptedAt, isSure: false }
      const last = past.findLast((one) => nameOf(one) === name)
      return last === undefined ? null : { at: last.clearedAt, isSure: true }
    },
    past(limit) {
      const cut = [...interrupted.values()].map(pastOf)
      const recent = [...past.map(({ number: _number, ...one }) => one), ...cut]
        .filter(({ clearedAt }) => clock.now() - clearedAt < pastMs)
        .reverse()
        .toSorted((a, b) => b.clearedAt - a.clearedAt)
      return { conditions: recent.slice(0, limit), more: recent.length > limit }
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

  function settle(): void {
    isSettled = true
    for (const one of interrupted.values()) add({ ...pastOf(one), number: next })
    interrupted.clear()
  }

  function interrupt(condition: Interrupted): void {
    if (interrupted.size < openMax) interrupted.set(nameOf(condition), condition)
  }

  /** What was open when the last run ended goes on, or is interrupted. */
  function resumeAll({ at, conditions }: z.infer<typeof openSchema>): void {
    for (const { interruptedAt, interrupted: by, ...one } of conditions)
      if (interruptedAt !== null || !register().resume(one))
        interrupt({ ...one, interruptedAt: interruptedAt ?? at, interrupted: by ?? 'stop' })
    if (isSettled) settle()
  }

  function openNow(): z.infer<typeof openSchema> {
    const open = register()
      .stored()
      .map((one) => ({ ...one, interruptedAt: null, interrupted: null }))
    return { at: clock.now(), conditions: [...open, ...interrupted.values()].slice(0, openMax) }
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
    let open: z.infer<typeof openSchema> | null = null
    for await (const page of pages({ gte: Buffer.from([pastTable]), lt: Buffer.from([openKey[0]! + 1]) }))
      for (const [key, value] of page) {
        if (key[0] === pastTable) {
          const one = parsed(pastSchema, value)
          if (one !== null) stored.push({ ...one, number: key.readUIntBE(1, 6) })
        } else if (key[0] === openKey[0]) open = parsed(openSchema, value)
        else
          for (const one of parsed(knownSchema, value) ?? [])
            if (!all.has(nameOf(one))) all.set(nameOf(one), one)
      }
    // Those that were cleared before the stored ones were read follow them.
    const since = past
    past = stored
    unwritten = []
    next = (stored.at(-1)?.number ?? -1) + 1
    for (const one of since) add({ ...one, number: next })
    if (open !== null) resumeAll(open)
    return true
  }

  async function write(store: RecordsStore): Promise<void> {
    const ops = unwritten
    const known: StoreOp[] = isKnownChanged
      ? [{ type: 'put', key: knownKey, value: textOf([...all.values()]) }]
      : []
    // Also where it is as it was: a kill is dated by the last write.
    const openOp: StoreOp = { type: 'put', key: openKey, value: textOf(openNow()) }
    unwritten = []
    isKnownChanged = false
    const written = await store.use(async (open) => {
      await open.write([...ops, ...known, openOp], { sync: false })
      return true
    })
    if (written !== null) return
    unwritten = [...ops, ...unwritten]
    isKnownChanged ||= known.length > 0
  }
}

function pastOf({ interruptedAt, happened: _happened, ...one }: Interrupted): PastCondition {
  return { ...one, clearedAt: interruptedAt }
}

function nameOf({ code, key }: Named): string {
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
