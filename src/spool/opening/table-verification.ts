// table-verification.ts: reads the tables of the open store again, slowly, because disks lose what they once
// stored. New tables are read a minute after they were written, so that a start after a kill has few to read.
// Once a day all tables are read.
//
// Damage raises a condition, and the next start checks everything. What is whole is noted in the check state.

import { pause, type Clock } from '../../std/clock.ts'
import { messageOf } from '../../std/gateway-error.ts'
import type { Emit } from '../../domain/event.ts'
import {
  damageText,
  liveTablesAt,
  type ReadTable,
  type ReadTables,
  type VerifiedTable,
} from '../../storage/storage.ts'
import { repairCommand } from './damage-report.ts'
import { storePathOf } from './aside.ts'
import type { StoreOpening } from './opening.ts'

type Deps = { clock: Clock; emit: Emit; readTables: ReadTables; opening: StoreOpening; random: () => number }

export type VerificationOptions = {
  path: string
  /** 0: nothing is read. */
  verifyBytesPerS: number
}

const lookEveryMs = 60_000
/** Most new tables are merged into others and deleted within seconds. */
const settledMs = 60_000
const passEveryMs = 86_400_000

/** Until `signal` aborts, which is the end of the session. Never rejects. */
export async function verifyTables(
  { clock, emit, readTables, opening, random }: Deps,
  { path, verifyBytesPerS }: VerificationOptions,
  signal: AbortSignal,
): Promise<void> {
  const storePath = storePathOf(path)
  const reported = new Set<string>()
  if (verifyBytesPerS === 0) return
  while (await pause(clock, lookEveryMs, signal)) {
    try {
      await round()
    } catch (error) {
      // The directory cannot be read for now, or memory for the thread is missing. The next round follows.
      emit({ kind: 'table_check_failed', why: messageOf(error) })
    }
  }

  async function round(): Promise<void> {
    const live = await liveTablesAt(storePath)
    const startedAt = clock.now()
    const isPass = Math.abs(startedAt - opening.checkState().passedAt) >= passEveryMs
    const tables = isPass ? rotated(live) : live.filter((table) => isNew(table, startedAt))
    if (tables.length === 0) return
    const whole: VerifiedTable[] = []
    const numbers = tables.map(({ number }) => number)
    await readTables(
      { path: storePath, tables: numbers, bytesPerS: verifyBytesPerS },
      { onTable: (read) => (read.damage.length === 0 ? void whole.push(read.table) : report(read)), signal },
    )
    const known = new Map(opening.checkState().verified.map((table) => [table.number, table]))
    for (const table of whole) known.set(table.number, table)
    const present = new Set((await liveTablesAt(storePath)).map(({ number }) => number))
    const verified = [...known.values()].filter(({ number }) => present.has(number))
    const passed = isPass && !signal.aborted ? { passedAt: startedAt } : {}
    await opening.note({ verified, ...passed, ...(reported.size > 0 ? { checkAll: true } : {}) })
  }

  function isNew({ number, bytes, mtimeMs }: VerifiedTable, now: number): boolean {
    if (Math.abs(now - mtimeMs) < settledMs) return false
    const known = opening.checkState().verified.find((table) => table.number === number)
    return known === undefined || known.bytes !== bytes || known.mtimeMs !== mtimeMs
  }

  /** A daemon that is often restarted reads other tables first each time. */
  function rotated(tables: readonly VerifiedTable[]): VerifiedTable[] {
    const first = Math.floor(random() * tables.length)
    return [...tables.slice(first), ...tables.slice(0, first)]
  }

  function report({ file, damage }: ReadTable): void {
    if (!reported.has(file))
      emit({ kind: 'table_damaged', file, what: damageText(damage), command: repairCommand(path) })
    reported.add(file)
  }
}
