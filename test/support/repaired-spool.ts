// repaired-spool.ts: repairs of spools whose files were damaged, also killed ones.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { repairSpool, type RepairOptions, type RepairReport } from '../../src/spool/spool.ts'
import { newFolder } from './folders.ts'

export function repair(path: string, options: Partial<RepairOptions> = {}): Promise<RepairReport> {
  return repairSpool(path, {
    apply: true,
    backup: null,
    purge: false,
    now: () => Date.UTC(2026, 0, 1),
    signal: new AbortController().signal,
    ...options,
  })
}

export async function copied(path: string): Promise<string> {
  const to = join(await newFolder(), 'spool')
  await cp(path, to, { recursive: true })
  return to
}

/**
 * Kills the repair of a copy of a spool behind its first step, of another copy behind the second, and so on, until one ends
 * by itself. `judge` gets what each left. Resolves with the number of steps.
 */
export async function killBehindEachStep(
  path: string,
  judge: (copy: string, step: number) => Promise<void>,
): Promise<number> {
  const program = join(import.meta.dirname, 'killable-repair.ts')
  for (let step = 1; ; step += 1) {
    const copy = await copied(path)
    const child = spawn(process.execPath, [program, copy, String(step)], { stdio: 'inherit' })
    const [, signal] = (await once(child, 'exit')) as unknown[]
    await judge(copy, step)
    if (signal !== 'SIGKILL') return step
  }
}
