// audited-change.ts: the audit log for commands that work on a spool without a daemon. They write the same
// two lines as the daemon, into the same file (src/ops/audit).
//
// A log that cannot be written is said on stderr and stops nothing: a repair may be what makes the disk
// writable. A spool that does not exist yet gets its lines when the work has made it.

import { chown, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../../std/clock.ts'
import { GatewayError, messageOf } from '../../std/gateway-error.ts'
import { auditFileNames, createAudit, type Audit, type ChangeEnd } from '../../ops/ops.ts'
import { withProgress } from '../terminal/progress.ts'
import { printNote, type CommandIo } from '../terminal/terminal.ts'
import { userName } from './find-daemon.ts'

export type OfflineChange<Report> = {
  spoolPath: string
  change: string
  /** Its options, as the parameters of the same change over HTTP. */
  request: string
  /** Given where the work may turn out to be a plan only: it is then recorded when it is done. */
  isChange?: (report: Report) => boolean
}

/** The config, and with it the limit of the log, may not be known. The daemon deletes what is too much. */
const auditBytesMax = Number.POSITIVE_INFINITY
/** Where none of them is, there is no spool yet. */
const spoolNames: readonly string[] = ['store', 'mark', 'records', ...auditFileNames]

/** Carries out `work` and records it. Rejects where `work` does. */
export async function audited<Report extends object>(
  io: Pick<CommandIo, 'env' | 'stderr' | 'stdout' | 'json'>,
  { spoolPath, change, request, isChange }: OfflineChange<Report>,
  work: () => Promise<Report>,
): Promise<Report> {
  const audit = createAudit(
    { clock: systemClock, emit: () => undefined },
    { folder: spoolPath, bytesMax: auditBytesMax },
  )
  const begin = async () => {
    const end = await audit.begin(change, request, callerOf(io))
    noteFailure(io, audit)
    return async (ended: ChangeEnd) => {
      await end(ended)
      noteFailure(io, audit)
    }
  }
  try {
    let end = isChange === undefined && (await isSpool(spoolPath)) ? await begin() : null
    try {
      const report = await withProgress(io, { what: 'Working on the spool' }, work)
      if (isChange?.(report) ?? true) end ??= await begin()
      await end?.({ status: 200, value: report })
      return report
    } catch (error) {
      await end?.({ status: 500, value: faultOf(error) })
      throw error
    }
  } finally {
    await audit.close()
    await keepOwner(spoolPath)
  }
}

function noteFailure(io: Pick<CommandIo, 'stderr' | 'json'>, audit: Audit): void {
  for (const state of audit.states())
    if (state.code === 'AUDIT_LOG_FAILED')
      printNote(io, `The audit log in ${state.path} cannot be written: ${state.why}`)
}

async function isSpool(path: string): Promise<boolean> {
  const names = await readdir(path).catch((): string[] => [])
  return names.some((name) => spoolNames.includes(name))
}

function callerOf({ env }: Pick<CommandIo, 'env'>) {
  return { via: 'offline', user: userName(), sudoUser: env['SUDO_USER'] ?? null } as const
}

function faultOf(error: unknown): object {
  if (!(error instanceof GatewayError)) return { why: messageOf(error) }
  const { code, what, why } = error
  return { code, what, why }
}

/** What root writes must stay writable for the daemon. */
async function keepOwner(spoolPath: string): Promise<void> {
  if (process.geteuid?.() !== 0) return
  const owner = await stat(spoolPath).catch(() => null)
  if (owner === null) return
  for (const name of auditFileNames)
    await chown(join(spoolPath, name), owner.uid, owner.gid).catch(() => undefined)
}
