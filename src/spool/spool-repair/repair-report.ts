// repair-report.ts: what a repair found and did, for the terminal, for programs, and beside the damaged
// files.

import { open, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { GatewayError } from '../../std/gateway-error.ts'
import { formatSize } from '../../std/quantity.ts'
import { canLink, type FilePlan } from '../../storage/storage.ts'
import { damagedFileOf, damageSentence } from '../salvage/lost-records.ts'
import type { DamagedFile } from '../views.ts'
import type { AsideStore } from './aside-store.ts'
import type { Losses } from './lost-payloads.ts'

export type RepairReport = {
  path: string
  /** `whole`: nothing is damaged, nothing was changed. `planned`: nothing was changed yet. */
  state: 'whole' | 'planned' | 'repaired'
  damage: readonly DamagedFile[]
  /** The damage in sentences. */
  problems: readonly string[]
  files: { whole: number; rewritten: number; lost: readonly string[]; logs: number }
  losses: Omit<Losses, 'returned' | 'added'> & {
    operationsInLogs: number | null
    /** The last 16 digits of lost payloadIds, as far as the dedup window has them. */
    payloadIdEnds: readonly string[]
  }
  /** What was settled before and comes back: it is deleted. */
  returned: { payloads: number; messages: number }
  /** Stores that were set aside. */
  merges: readonly MergeReport[]
  bytesNeeded: number
  bytesFree: number
  /** Where the damaged files are or will be. */
  asidePath: string | null
  backup: string | null
  purged: readonly string[]
  /** True where an interrupted repair was finished or begun anew. */
  wasInterrupted: boolean
}

/** A store that was set aside (`spool.on_damage`), and what comes or came from it into the running one. */
export type MergeReport = {
  path: string
  payloads: number
  batches: number
  deadLetters: number
  messages: number
  stateEntries: number
  problems: readonly string[]
  losses: Omit<Losses, 'returned' | 'added'>
  bytesNeeded: number
}

type Found = {
  plan: FilePlan
  losses: Losses
  lostIds: readonly string[]
  wasInterrupted: boolean
  apply: boolean
}

export async function reportOf(
  spoolPath: string,
  { plan, losses, lostIds, wasInterrupted, apply }: Found,
): Promise<RepairReport> {
  const { tables, lostTables, logs, damage } = plan
  const damaged = damage.map(damagedFileOf)
  const lostInLogs = logs.map(({ lostOperations }) => lostOperations)
  const { returned, added: _added, ...lost } = losses
  // A probe writes, which a plan does not.
  const linkBytes = !apply || (await canLink(spoolPath)) ? 0 : keptBytes(plan)
  const { bavail, bsize } = await statfs(spoolPath)
  return {
    path: spoolPath,
    state: 'planned',
    damage: damaged,
    problems: damaged.map(damageSentence),
    files: {
      whole: tables.filter(({ action }) => action === 'keep' || action === 'renumber').length,
      rewritten: tables.filter(({ action }) => action === 'rewrite' || action === 'merge').length,
      lost: lostTables,
      logs: logs.length,
    },
    losses: {
      ...lost,
      payloadIdEnds: lostIds,
      operationsInLogs: lostInLogs.includes(null)
        ? null
        : lostInLogs.reduce((sum: number, count) => sum + (count ?? 0), 0),
    },
    returned: { payloads: returned.payloads, messages: returned.messages },
    merges: [],
    bytesNeeded: plan.bytesNeeded + linkBytes,
    bytesFree: bavail * bsize,
    asidePath: null,
    backup: null,
    purged: [],
    wasInterrupted,
  }
}

/** Without hard links, what is set aside is copied. */
function keptBytes({ directory, damage }: FilePlan): number {
  const names = new Set(damage.map(({ file }) => file))
  return [...directory.files.tables, ...directory.files.logs]
    .filter(({ name }) => names.has(name))
    .reduce((sum, { bytes }) => sum + bytes, 0)
}

/** Rejects with SPOOL_DISK_FULL. */
export async function refuseWithoutSpace(spoolPath: string, bytesNeeded: number): Promise<void> {
  const { bavail, bsize } = await statfs(spoolPath)
  const bytesFree = bavail * bsize
  if (bytesFree >= bytesNeeded) return
  throw new GatewayError('SPOOL_DISK_FULL', {
    what: `There is no space to repair the spool at ${spoolPath}.`,
    why: `The repair needs ${formatSize(bytesNeeded)}, and ${formatSize(bytesFree)} are free on its file system.`,
    act: `Free space on that file system. The file ${join(spoolPath, 'ballast')} may be deleted; no other one.`,
  })
}

export async function writeReport(asidePath: string, name: string, report: object): Promise<void> {
  const file = await open(join(asidePath, name), 'w', 0o600)
  try {
    await file.writeFile(`${JSON.stringify(report, null, 2)}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
}

export function mergeReportOf(aside: AsideStore): MergeReport {
  const { path, payloads, batches, deadLetters, messages, stateEntries, damage, bytes } = aside
  const { returned: _returned, added: _added, ...losses } = aside.losses
  const problems = damage.map((damaged) => damageSentence(damagedFileOf(damaged)))
  const bytesNeeded = bytes + smallFilesBytes
  return { path, payloads, batches, deadLetters, messages, stateEntries, problems, losses, bytesNeeded }
}

/** For the manifest, the journal, the log and the directories. */
const smallFilesBytes = 16 * 1024 * 1024
