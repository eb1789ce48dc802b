// dead-copies.ts: copies dead letters to the engine. They stay in the gateway, where a person works on them;
// the copy is for the case that its disk is lost: `dead-letters requeue --file` reads a file of copies. A
// message is acknowledged to the engine only behind the copy of its dead letter.
//
// A pass makes everything durable that was added by its start, and copies what follows the last copied one.
// The id of that is kept over restarts; where it is lost, all are copied again, and the import knows them.
// An engine has a limit for messages (1 MiB at NATS), and a line is a third larger than its message. Where
// lines are not confirmed and a large one is among them, it is stored without the bytes of its message: one
// device must not pin the partitions of all. The dead letter itself keeps them.
//
// Ids follow the clock: where it was set back, the numbers in them find those that sort before.

import type { Emit } from '../../domain/event.ts'
import type { DeadLetterEntry } from '../../spool/spool.ts'
import type { StoredEntry } from '../message-sources/types.ts'
import type { EngineQueues } from './engine-queues.ts'
import type { CopiedMark, CustodySpool } from './types.ts'

export type DeadCopies = {
  /** Dead letters of this opening of the store with lower numbers are copied. */
  copiedTo(): number
  /** Begins a pass where one is needed and none runs. */
  pass(): void
  /** The store was opened again: its numbers start anew. */
  restart(): void
  copied(): number
  /** Resolves when no pass runs. */
  idle(): Promise<void>
}

/** `whole`: of a large one. */
type Copy = StoredEntry & { whole?: DeadLetterEntry }

type Deps = {
  spool: Pick<CustodySpool, 'deadLetters' | 'nextDeadLetter' | 'exchange'>
  queues: Pick<EngineQueues, 'store' | 'mayStore'>
  mark: CopiedMark
  /** As a line of `dead-letters export`. */
  lineOf: (entry: DeadLetterEntry) => string
  emit: Emit
  signal: AbortSignal
}

const atOnce = 200
const largeBytes = 256 * 1024

export function createDeadCopies({ spool, queues, mark, lineOf, emit, signal }: Deps): DeadCopies {
  /** Null: nothing of this opening of the store. */
  let copiedTo: number | null = null
  /** The first number of this opening; of an earlier one a running pass copies nothing to its end. */
  let first = spool.nextDeadLetter()
  let cursor: string | null | undefined
  let running: Promise<void> | null = null
  let copied = 0

  function pass(): void {
    const next = spool.nextDeadLetter()
    if (running !== null || next === null || next === copiedTo || !queues.mayStore() || signal.aborted) return
    running = copy(next)
      // Tried again by the next tick: the queues have reported it, or the store was lost.
      .catch(() => undefined)
      .finally(() => {
        running = null
      })
  }

  async function copy(next: number): Promise<void> {
    const opening = first
    const from = copiedTo ?? first ?? next
    await spool.exchange({ take: [], payloads: [], deadLetters: [], stateChanges: [] })
    cursor ??= await mark.read()
    const isNew = (id: string) => isBetween(id, from, next)
    const found = await copyEach(cursor, () => true, isNew)
    if (found < next - from) await copyEach(null, isNew, isNew)
    if (cursor !== null) await mark.write(cursor)
    if (first === opening) copiedTo = next
  }

  /** Resolves with the number of those that are counted. Some may have been purged meanwhile. */
  async function copyEach(
    after: string | null,
    wants: (id: string) => boolean,
    counts: (id: string) => boolean,
  ): Promise<number> {
    let entries: Copy[] = []
    let last: string | null = null
    let found = 0
    const send = async () => {
      if (entries.length === 0) return
      await store(entries)
      copied += entries.length
      entries = []
      if (last !== null && (cursor === null || cursor === undefined || last > cursor)) cursor = last
    }
    const filter = { limit: Number.POSITIVE_INFINITY, ...(after === null ? {} : { after }) }
    for await (const entry of spool.deadLetters(filter)) {
      signal.throwIfAborted()
      if (!wants(entry.id)) continue
      if (counts(entry.id)) found += 1
      last = entry.id
      const { stage, reason, provider } = entry.deadLetter
      const headers = { kind: 'dead_letter', id: entry.id, stage, reason, provider: provider ?? '' }
      const body = Buffer.from(lineOf(entry))
      entries.push({ headers, body, ...(body.length > largeBytes && { whole: entry }) })
      if (entries.length === atOnce) await send()
    }
    await send()
    return found
  }

  async function store(copies: readonly Copy[]): Promise<void> {
    try {
      await queues.store('dead', copies, signal)
    } catch (error) {
      const large = copies.filter(({ whole }) => whole !== undefined).length
      if (large === 0 || signal.aborted) throw error
      await queues.store('dead', copies.map(withoutBytes), signal)
      emit({ kind: 'custody_copies_cut', copies: large })
    }
  }

  function withoutBytes(copy: Copy): StoredEntry {
    const { headers, whole } = copy
    const deadLetter = whole?.deadLetter
    if (whole === undefined || !deadLetter?.envelope) return copy
    const detail = `${deadLetter.detail} This copy is without the bytes of the message: the engine did not take them.`
    const envelope = { ...deadLetter.envelope, bytes: '' }
    return {
      headers,
      body: Buffer.from(lineOf({ ...whole, deadLetter: { ...deadLetter, detail, envelope } })),
    }
  }

  return {
    copiedTo: () => copiedTo ?? -1,
    pass,
    restart() {
      copiedTo = null
      first = spool.nextDeadLetter()
    },
    copied: () => copied,
    idle: async () => {
      await running
    },
  }
}

function isBetween(id: string, from: number, to: number): boolean {
  const n = Number.parseInt(id.slice(16), 16)
  return n >= from && n < to
}
