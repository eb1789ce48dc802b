// status-tables.ts: tables and words of the state, for the command `status` and for the page.

import { formatDuration, formatSize } from '../std/quantity.ts'
import { agoSince } from '../std/text-table/text-lines.ts'
import type { Cell, ShownTable } from './operations/shown-block.ts'
import type { Status } from './status-schema/status-schema.ts'

export function providerTable({ providers, now }: Status): ShownTable {
  const ago = agoOf(now)
  const rows = providers.map((one): Cell[] => [
    one.name,
    { text: one.endpoint, state: one.endpoint },
    ago(one.since),
    ago(one.lastAcceptedAt),
    one.payloadsPerSecond.toFixed(1),
    String(one.inFlight),
    one.nextAttemptAt === null ? 'now' : ago(one.nextAttemptAt),
    offsetText(one.clockOffsetMs),
  ])
  const delivery = ['provider', 'endpoint', 'since', 'last accepted', '*payloads/s', '*in flight']
  return { caption: 'delivery to the service', head: [...delivery, 'next try', 'clock offset'], rows }
}

/** In the order in which they are sent. */
export function laneTable({ lanes, now }: Pick<Status, 'lanes' | 'now'>): ShownTable {
  const rows = lanes.map((lane): Cell[] => [
    String(lane.id),
    lane.provider,
    lane.urgency + (lane.retry === null ? '' : `, ${lane.retry.schedule} ${lane.retry.step + 1}`),
    String(lane.pending),
    String(lane.sealed),
    String(lane.held),
    formatSize(lane.bytes),
    lane.oldestAt === null ? '-' : agoOf(now)(lane.oldestAt),
    lane.pending + lane.sealed === 0 ? '-' : drainText(lane.secondsToDrain),
  ])
  const counts = ['*pending', '*sealed', '*held', '*size']
  return {
    caption: 'lanes, in the order in which they are sent',
    head: ['lane', 'provider', 'urgency', ...counts, 'oldest', 'time to drain'],
    rows,
  }
}

const agoOf =
  (now: string) =>
  (at: string | null): Cell =>
    at === null ? 'never' : { text: agoSince(at, Date.parse(now)), at }

export function drainText(seconds: number | null): string {
  if (seconds === null) return 'nothing moves'
  return seconds < 1 ? 'less than 1 s' : `about ${formatDuration(seconds * 1000)}`
}

export function offsetText(offsetMs: number | null): string {
  if (offsetMs === null) return 'unknown'
  return `${offsetMs < 0 ? '-' : '+'}${formatDuration(Math.abs(offsetMs))}`
}
