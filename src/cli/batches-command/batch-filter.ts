// batch-filter.ts: the options that select batches, and the selection that follows from them.

import { InvalidArgumentError, type Command } from 'commander'
import { GatewayError } from '../../std/gateway-error.ts'
import { heldReasons, type HeldReason } from '../../domain/held.ts'
import type { BatchSelection } from '../../delivery/types.ts'
import { duration } from '../terminal/option-values.ts'

export type BatchFilterOptions = {
  provider?: string
  reason?: readonly HeldReason[]
  olderThan?: number
  all?: boolean
}

const yearMs = 365 * 86_400_000

export function withBatchFilter(command: Command): Command {
  return command
    .option('--provider <name>', 'only batches of this provider', once)
    .option(
      '--reason <reason>',
      `only batches held for this reason (may be repeated): ${reasonNames()}`,
      addReason,
    )
    .option(
      '--older-than <duration>',
      'only batches that are held, or if not held were sealed, this long ago or longer',
      onceDuration,
    )
}

/** For commands that change batches: ids, or a filter, or --all. */
export function withBatchSelection(command: Command): Command {
  return withBatchFilter(command.argument('[batchId...]', 'batches to change'))
    .option('--all', 'select all held batches')
    .option('--dry-run', 'only show what would be done')
}

export function filterOf({ provider, reason: reasons, olderThan }: BatchFilterOptions): BatchSelection {
  return {
    ...(provider === undefined ? {} : { provider }),
    ...(reasons === undefined ? {} : { reasons }),
    ...(olderThan === undefined ? {} : { olderThanMs: olderThan }),
  }
}

/** Without a selection the command does not assume that all are meant. */
export function selectionOf(options: BatchFilterOptions, ids: readonly string[]): BatchSelection {
  const selection = ids.length === 0 ? filterOf(options) : { ...filterOf(options), ids }
  if (options.all === true && ids.length > 0)
    throw new GatewayError('USAGE', {
      what: 'BatchIds are given together with --all.',
      why: '--all selects every held batch, the ids only some.',
      act: 'Give one of them.',
    })
  if (options.all === true && Object.keys(selection).length > 0)
    throw new GatewayError('USAGE', {
      what: 'A filter and --all are given together.',
      why: '--all selects every held batch, a filter only some.',
      act: 'Give one of them.',
    })
  if (Object.keys(selection).length > 0 || options.all === true) return selection
  throw new GatewayError('USAGE', {
    what: 'No batch is selected.',
    why: 'The command does not assume that you mean all held batches.',
    act: 'Give batchIds, or a filter such as --reason or --provider, or --all.',
  })
}

function reasonNames(): string {
  return Object.keys(heldReasons).join(', ')
}

function once(text: string, previous: unknown): string {
  if (previous === undefined) return text
  throw new InvalidArgumentError('Give the option once.')
}

function onceDuration(text: string, previous: unknown): number {
  return duration(0, yearMs)(once(text, previous))
}

function addReason(text: string, previous: readonly HeldReason[] = []): readonly HeldReason[] {
  if (Object.hasOwn(heldReasons, text)) return [...previous, text as HeldReason]
  throw new InvalidArgumentError(`Give one of ${reasonNames()}.`)
}
