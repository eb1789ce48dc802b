// dead-letter-filter.ts: the options that select dead letters, and the query that follows from them.

import { InvalidArgumentError, type Command } from 'commander'
import { GatewayError } from '../../std/gateway-error.ts'
import type { DeadLetterQuery } from '../../dead-letters/dead-letters.ts'
import { toDeadLetterParams } from '../../ops/ops.ts'
import { time } from '../terminal/option-values.ts'

const filterNames = ['stage', 'reason', 'device', 'source', 'provider', 'since', 'until'] as const

export type FilterOptions = Pick<DeadLetterQuery, (typeof filterNames)[number]> & { all?: boolean }

export function withFilterOptions(command: Command): Command {
  return command
    .option('--stage <stage>', 'only this stage: mapping (messages) or delivery (payloads)', stage)
    .option('--reason <code>', 'only with this reason, for example Validation or NOT_JSON')
    .option('--device <name>', 'only of this device')
    .option('--source <name>', 'only messages of this source')
    .option('--provider <name>', 'only payloads of this provider')
    .option('--since <time>', 'only from this time on: 14:03 (today), 2026-11-20T06:00Z or 2h (ago)', time)
    .option('--until <time>', 'only before this time', time)
}

function stage(text: string): FilterOptions['stage'] {
  if (text === 'mapping' || text === 'delivery') return text
  throw new InvalidArgumentError('Give mapping or delivery.')
}

export function queryOf(options: FilterOptions, ids: readonly string[] = []): DeadLetterQuery {
  const set = filterNames.filter((name) => options[name] !== undefined)
  const query: DeadLetterQuery = Object.fromEntries(set.map((name) => [name, options[name]]))
  return ids.length > 0 ? { ...query, ids } : query
}

/** For commands that change something: without a selection they do not assume that all are meant. */
export function requiredQuery(options: FilterOptions, ids: readonly string[]): DeadLetterQuery {
  const query = queryOf(options, ids)
  if (options.all === true && ids.length > 0)
    throw new GatewayError('USAGE', {
      what: 'Ids are given together with --all.',
      why: '--all selects every dead letter, the ids only some.',
      act: 'Give one of them.',
    })
  if (options.all === true && Object.keys(query).length > 0)
    throw new GatewayError('USAGE', {
      what: `--${Object.keys(query).join(', --')} and --all are given together.`,
      why: '--all selects every dead letter, a filter only some.',
      act: 'Give one of them.',
    })
  if (Object.keys(query).length > 0 || options.all === true) return query
  throw new GatewayError('USAGE', {
    what: 'No dead letter is selected.',
    why: 'The command does not assume that you mean all of them.',
    act: 'Give ids, or a filter such as --reason or --device, or --all.',
  })
}

/** Parameters of a request to the daemon; `flags` are added as 1 where they are set. */
export function paramsOf(
  query: DeadLetterQuery,
  flags: Record<string, boolean | undefined> = {},
): URLSearchParams {
  const params = toDeadLetterParams(query)
  for (const [name, isSet] of Object.entries(flags)) if (isSet) params.set(name, '1')
  return params
}
