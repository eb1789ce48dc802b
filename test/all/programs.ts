// programs.ts: the programs of the machine that tests need (programs.json: where each is, its package of Debian, what
// is tried with it). Tests that need a missing one skip.
//
//   node test/all/programs.ts              names those that are missing; exit status 1 if any is

import { existsSync } from 'node:fs'
import programs from './programs.json' with { type: 'json' }

export type Program = { path: string; package: string; for: string }

export function missingPrograms(): Program[] {
  return Object.entries(programs)
    .map(([path, program]) => ({ path, ...program }))
    .filter(({ path }) => !existsSync(path))
}

export function missingText({ path, package: name, for: use }: Program): string {
  return `skipped: what needs ${path} (package ${name}): ${use}`
}

if (import.meta.main) {
  const missing = missingPrograms()
  for (const program of missing) process.stdout.write(`${missingText(program)}\n`)
  process.exitCode = missing.length > 0 ? 1 : 0
}
