// live-walk.ts: walks over the records of a spool that is in use: all of them for `spool verify`, or its payloads, to
// tell copies before they come in.
//
// The walk over everything begins when no write runs, so that what it sees is what memory says in that moment; the two
// are compared. It holds one iteration open: LevelDB keeps what is deleted meanwhile until it ends, so it is made when
// somebody asks, and not by itself (open-count.ts does that, in slices).

import { codeOf, messageOf } from '../../std/gateway-error.ts'
import type { PayloadId } from '../../domain/ids.ts'
import { payloadIdIn } from '../../domain/payload.ts'
import { eachFrame, readChunk } from '../chunk-log/chunk-codec.ts'
import type { Committer } from '../chunk-log/committer.ts'
import type { Epoch } from '../session.ts'
import { closedFault } from '../spool-errors.ts'
import { table, tableRange } from '../chunk-log/key-layout.ts'
import { settledPayloads } from '../chunk-log/lane.ts'
import { letterRecord } from '../chunk-log/record-codec.ts'
import { createCheck, type SpoolCheck } from './spool-check.ts'
import { scan, type Scanned } from './damage-scan.ts'
import type { Spool } from '../spool.ts'
import type { SpoolState } from '../session-state.ts'

const everything = { gte: Buffer.from([0]), lt: Buffer.from([255]) }

/** Only damage: whatever else fails is the store's failure. */
function isDamage(error: unknown): boolean {
  return codeOf(error) === 'LEVEL_CORRUPTION'
}

export function createWalks(epochNow: () => Epoch | null): Pick<Spool, 'check' | 'storedPayloadIds'> {
  return { check: (signal) => blamed(checkNow, signal), storedPayloadIds: known }

  function known(ids: ReadonlySet<PayloadId>, signal: AbortSignal): Promise<Set<PayloadId>> {
    return blamed((epoch, signal) => knownOf(epoch.state, ids, signal), signal)
  }

  async function blamed<Result>(
    work: (epoch: Epoch, signal: AbortSignal) => Promise<Result>,
    signal: AbortSignal,
  ): Promise<Result> {
    const epoch = epochNow()
    if (epoch === null) throw closedFault()
    try {
      return await work(epoch, signal)
    } catch (error) {
      throw epoch.blame(error)
    }
  }
}

async function checkNow({ state, committer }: Epoch, signal: AbortSignal): Promise<SpoolCheck> {
  const check = createCheck()
  const { pages, memory } = await atRest(committer, signal, () => ({
    pages: begun(scan(state.store, everything, isDamage)),
    memory: memoryOf(state),
  }))
  for await (const page of pages) {
    if (signal.aborted) throw closedFault()
    if (page.kind === 'gap') check.skip(page.from, messageOf(page.why))
    else for (const [key, value] of page.entries) check.see(key, value)
  }
  const found = check.finish()
  const differences = found.ok ? differencesOf(memory, found) : []
  return { ...found, ok: found.ok && differences.length === 0, problems: [...found.problems, ...differences] }
}

/** Looks in a moment when no write runs; rejects where the store is lost first. */
function atRest<Seen>({ quiet, idle }: Committer, signal: AbortSignal, look: () => Seen): Promise<Seen> {
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(closedFault())
    signal.addEventListener('abort', giveUp, { once: true })
    quiet(() => {
      if (!signal.aborted) resolve(look())
    })
    // It resolves after the look, or at once when there will be none.
    void idle().then(giveUp)
  })
}

/** An iteration whose snapshot is taken now and not when it is first asked. */
function begun(pages: AsyncGenerator<Scanned>): AsyncGenerator<Scanned> {
  const first = pages.next()
  // Whoever asks for it hears of it.
  first.catch(() => undefined)
  return (async function* () {
    try {
      const { done, value } = await first
      if (done === true) return
      yield value
      yield* pages
    } finally {
      await pages.return(undefined)
    }
  })()
}

/** What memory says of each lane: the same words as those made of the records. */
function memoryOf({ lanes }: SpoolState): string[] {
  return [...lanes.values()]
    .filter(({ nextSeq }) => nextSeq > 0)
    .map(
      ({ id, nextSeq, settled, openPayloads }) =>
        `Lane ${id}: ${nextSeq} appended, ${settledPayloads(settled)} settled, ${openPayloads} open`,
    )
}

function differencesOf(memory: readonly string[], { lanes }: SpoolCheck): string[] {
  const found = new Set(
    lanes.map(
      ({ lane, appended, settled, open }) =>
        `Lane ${lane}: ${appended} appended, ${settled} settled, ${open} open`,
    ),
  )
  return memory
    .filter((said) => !found.has(said))
    .map((said) => `${said}, as memory has it; the records differ.`)
}

async function knownOf(
  { store }: SpoolState,
  ids: ReadonlySet<PayloadId>,
  signal: AbortSignal,
): Promise<Set<PayloadId>> {
  const found = new Set<PayloadId>()
  for (const kind of [table.chunks, table.deadLetters] as const)
    for await (const page of scan(store, tableRange(kind), isDamage)) {
      if (signal.aborted) throw closedFault()
      if (page.kind === 'gap') continue
      for (const [, value] of page.entries)
        for (const id of kind === table.chunks ? idsInChunk(value) : idInLetter(value))
          if (ids.has(id)) found.add(id)
    }
  return found
}

function idsInChunk(value: Buffer): PayloadId[] {
  const chunk = readChunk(value)
  const ids: PayloadId[] = []
  if (chunk !== null) eachFrame(chunk, (_attempts, start) => ids.push(payloadIdIn(chunk.value, start)))
  return ids
}

function idInLetter(value: Buffer): PayloadId[] {
  const id = letterRecord.decode(value)?.payloadId ?? null
  return id === null ? [] : [id]
}
