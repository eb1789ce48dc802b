// skipped-tests.ts: a reporter of vitest that names at the end what was skipped, a line for each file and reason. The
// summaries of `npm run test:all` and of CI repeat these lines.

import { relative } from 'node:path'
import type { Reporter, TestCase, TestModule, Vitest } from 'vitest/node'
import { missingPrograms, missingText } from './programs.ts'

export class SkippedTests implements Reporter {
  #isFiltered = false

  onInit({ config }: Vitest): void {
    this.#isFiltered = config.testNamePattern !== undefined
  }

  /** What `-t` leaves out looks like what cannot run. */
  onTestRunEnd(modules: readonly TestModule[]): void {
    if (this.#isFiltered) return
    const lines = modules.flatMap((module) => linesOf(module))
    if (lines.length > 0) lines.push(...missingPrograms().map(missingText))
    for (const line of lines) process.stdout.write(`${line}\n`)
  }
}

function linesOf(module: TestModule): string[] {
  const counts = new Map<string, number>()
  for (const test of module.children.allTests('skipped')) {
    if (!wasSkippedByItself(test)) continue
    const reason = reasonOf(test)
    counts.set(reason, (counts.get(reason) ?? 0) + 1)
  }
  const file = relative(process.cwd(), module.moduleId)
  return [...counts].map(
    ([reason, count]) => `skipped: ${count} ${count === 1 ? 'test' : 'tests'} of ${file}: ${reason}`,
  )
}

function wasSkippedByItself(test: TestCase): boolean {
  for (let at: TestCase['parent'] | TestCase = test; at.type !== 'module'; at = at.parent)
    if (at.options.mode === 'skip') return true
  return noteOf(test) !== undefined
}

function noteOf(test: TestCase): string | undefined {
  const result = test.result()
  return result.state === 'skipped' ? result.note : undefined
}

/** What the test said, or else the name of the part that is skipped as a whole. */
function reasonOf(test: TestCase): string {
  const note = noteOf(test)
  if (note !== undefined) return note
  let skipped: { name: string } = test
  for (let at: TestCase['parent'] | TestCase = test; at.type !== 'module'; at = at.parent)
    if (at.options.mode === 'skip') skipped = at
  return `"${skipped.name}" cannot run on this machine`
}
