// config-error.ts: the error for a config with problems. It lists all of them in file order, one per line.
// One that is in many places is one line.

import { GatewayError } from '../std/gateway-error.ts'
import { groupedProblems } from '../std/config-problem.ts'
import type { LocatedProblem, ReadResult } from './config-reader.ts'

export class ConfigError extends GatewayError {
  readonly problems: readonly LocatedProblem[]
  /** `config/gateway.yaml:41:17  delivery.max_in_flight must be 1 to 64, found 0.` */
  readonly lines: readonly string[]

  constructor(file: string, problems: readonly LocatedProblem[]) {
    const lines = groupedProblems(
      problems.map(({ line, column, path, message }) => ({
        line,
        place: `${file}:${line}:${column}`,
        message,
        // The same option of several entries: `sources[0].provider` and `sources[7].provider`.
        rule: path !== '' && message.startsWith(path) ? generic(path) + message.slice(path.length) : message,
      })),
    )
    const count = problems.length === 1 ? 'one problem' : `${problems.length} problems`
    super('CONFIG_INVALID', {
      what: `The config ${file} has ${count}.`,
      why: lines.join('\n'),
      act: 'Correct the config and run `check` again. config/reference.md describes every option.',
    })
    this.problems = problems
    this.lines = lines
  }
}

function generic(path: string): string {
  return path.replaceAll(/\[\d+\]/g, '[]')
}

/** What was read from `file`; throws ConfigError for problems. */
export function requireConfig<Config>(
  file: string,
  result: ReadResult<Config>,
): Extract<ReadResult<Config>, { kind: 'config' }> {
  if (result.kind === 'problems') throw new ConfigError(file, result.problems)
  return result
}
