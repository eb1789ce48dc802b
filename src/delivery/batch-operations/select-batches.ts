// select-batches.ts: which batches a selection takes, and how a list shows them. Pure.

import { formatDuration } from '../../std/quantity.ts'
import type { EpochMs } from '../../std/clock.ts'
import type { BatchGroup, BatchList, BatchSelection, BatchView } from '../types.ts'

/**
 * In the order of the ids, or the oldest first. `missing`: ids that no batch has. A held batch that is being
 * retried is selected, too, so that the report names it.
 */
export function selectBatches(
  views: Iterable<BatchView>,
  selection: BatchSelection,
  now: EpochMs,
): { selected: readonly BatchView[]; missing: readonly string[] } {
  const { ids } = selection
  const matching = [...views].filter(matcher(selection, now))
  if (ids === undefined)
    return { selected: matching.filter(({ held }) => held !== null).sort(byAge), missing: [] }
  const byId = new Map<string, BatchView>(matching.map((view) => [view.batchId, view]))
  const wanted = [...new Set(ids.map((id) => id.toLowerCase()))]
  return {
    selected: wanted.flatMap((id) => byId.get(id) ?? []),
    missing: wanted.filter((id) => !byId.has(id)),
  }
}

export function listBatches(
  views: Iterable<BatchView>,
  selection: BatchSelection,
  { now, limit }: { now: EpochMs; limit: number },
): BatchList {
  const groups = new Map<string, BatchGroup>()
  const matching: BatchView[] = []
  const matches = matcher(selection, now)
  for (const view of views) {
    if (!matches(view)) continue
    matching.push(view)
    addToGroup(groups, view)
  }
  matching.sort((a, b) => Number(b.state === 'held') - Number(a.state === 'held') || byAge(a, b))
  return {
    now,
    groups: [...groups.values()].sort((a, b) => a.oldestAt - b.oldestAt),
    batches: matching.slice(0, limit),
    more: Math.max(0, matching.length - limit),
  }
}

/** For the log: what was selected, in the words of the command. */
export function describeSelection({ ids, provider, reasons = [], olderThanMs }: BatchSelection): string {
  const parts = [
    ...(ids === undefined ? [] : [ids.slice(0, 10).join(' ')]),
    ...(ids !== undefined && ids.length > 10 ? [`and ${ids.length - 10} more`] : []),
    ...(provider === undefined ? [] : [`--provider ${provider}`]),
    ...reasons.map((reason) => `--reason ${reason}`),
    ...(olderThanMs === undefined ? [] : [`--older-than ${formatDuration(olderThanMs).replaceAll(' ', '')}`]),
  ]
  return parts.length === 0 ? '--all' : parts.join(' ')
}

function matcher(
  { ids, provider, reasons, olderThanMs }: BatchSelection,
  now: EpochMs,
): (view: BatchView) => boolean {
  const wanted = ids === undefined ? null : new Set(ids.map((id) => id.toLowerCase()))
  return (view) => {
    if (wanted !== null && !wanted.has(view.batchId)) return false
    if (provider !== undefined && view.provider !== provider) return false
    if (reasons !== undefined && (view.held === null || !reasons.includes(view.held.reason))) return false
    return olderThanMs === undefined || now - sinceOf(view) >= olderThanMs
  }
}

function addToGroup(groups: Map<string, BatchGroup>, view: BatchView): void {
  const { provider, state, held, payloads } = view
  const reason = held?.reason ?? null
  const key = `${provider}|${state}|${reason ?? ''}`
  const group = groups.get(key) ?? {
    provider,
    state,
    reason,
    batches: 0,
    payloads: 0,
    oldestAt: sinceOf(view),
  }
  groups.set(key, group)
  group.batches += 1
  group.payloads += payloads
  group.oldestAt = Math.min(group.oldestAt, sinceOf(view))
}

function sinceOf({ held, sealedAt }: BatchView): EpochMs {
  return held?.since ?? sealedAt
}

function byAge(a: BatchView, b: BatchView): number {
  return sinceOf(a) - sinceOf(b)
}
