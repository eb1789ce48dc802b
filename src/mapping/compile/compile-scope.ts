// compile-scope.ts: the option of the config that is being compiled, and the list of its problems.

import { ended, type ConfigProblem } from '../../std/config-problem.ts'
import { Malformed } from '../path/text-cursor.ts'

export type Keys = ConfigProblem['path']

export type Scope = {
  /** Names of the captures of the source's topic. */
  readonly captures: readonly string[]
  /** Reports a problem of the option at `keys`, relative to this scope. */
  report(keys: Keys, message: string): void
  /** Runs `compile`. A malformed text becomes a problem at `keys`; the result is then undefined. */
  compile<Result>(keys: Keys, compile: () => Result): Result | undefined
  /** The scope of an option below this one. */
  at(...keys: Keys): Scope
}

export function createScope(problems: ConfigProblem[], path: Keys, captures: readonly string[] = []): Scope {
  return {
    captures,
    report,
    compile,
    at: (...keys) => createScope(problems, [...path, ...keys], captures),
  }

  function report(keys: Keys, message: string): void {
    problems.push({ path: [...path, ...keys], message })
  }

  function compile<Result>(keys: Keys, run: () => Result): Result | undefined {
    try {
      return run()
    } catch (error) {
      if (!(error instanceof Malformed)) throw error
      report(keys, ended(error.message))
      return undefined
    }
  }
}
