// gateway-verdict.ts: the one answer to "does it work": ok, degraded, not_delivering or not_receiving, with a
// sentence and the two ages that prove it. Pure. On top of /status and `status`, and at /verdict for
// monitors.
//
//   not_receiving    senders get no acknowledgement, devices cannot connect, or are silent for too long
//   not_delivering   payloads wait, and the service accepts none
//   degraded         it receives and delivers, and at least one condition needs a person
//   ok               none of these. Conditions of severity `info` do not count
//
// The first that holds is the verdict. Which conditions stop what: `stops` of each. With
// several providers, delivery stops only where it stops for each of them. Delivery is also seen by its
// result: where payloads wait and none was accepted for `waitsMs`, the verdict is not_delivering, with the
// condition that is the likely cause (`delays`) where there is one.

import { isoTimeOrNull, type EpochMs } from '../../std/clock.ts'
import { formatAgo, formatDuration } from '../../std/quantity.ts'
import type { HoldReason } from '../../domain/event.ts'
import type { ProviderView } from '../../delivery/types.ts'
import type { LaneView } from '../../spool/spool.ts'
import { specOf } from '../conditions/condition-catalogue.ts'
import type { Condition } from '../conditions/conditions.ts'
import { oldestOf } from '../lane-age.ts'

export const verdicts = ['ok', 'degraded', 'not_delivering', 'not_receiving'] as const
export type Verdict = (typeof verdicts)[number]

export type VerdictView = { verdict: Verdict; sentence: string }

export type VerdictSource = {
  now: EpochMs
  startedAt: EpochMs
  /** The start, or the last loss of the spool: what is counted and remembered begins anew then. */
  countedSince: EpochMs
  /** What the start or the stop does, or why the spool is refused; null where none of these. */
  notReady: string | null
  holdReason: HoldReason | null
  /** Worst first. */
  conditions: readonly Condition[]
  providers: readonly Pick<ProviderView, 'name' | 'lastAcceptedAt'>[]
  lanes: readonly Pick<
    LaneView,
    'pending' | 'sealed' | 'heldPayloads' | 'role' | 'oldestAt' | 'oldestSealedAt'
  >[]
  /** Of any message since the start; null where none came. */
  lastMessageAt: EpochMs | null
}

/** Payloads that wait longer than this, while none is accepted, are not being delivered. */
const waitsMs = 120_000
/** Conditions that stop the delivery of a provider, in the sentence. */
const namedMax = 3

export function verdictOf(source: VerdictSource): VerdictView {
  const [verdict, cause] = causeOf(source)
  return { verdict, sentence: `${cause} ${agesOf(source)}` }
}

/** For `systemctl status`, which gets changes only: without the ages. */
export function serviceStatusOf(source: VerdictSource): { verdict: Verdict; text: string } {
  const [verdict, cause] = causeOf(source)
  return { verdict, text: verdict === 'ok' ? 'Ready' : `${verdict}: ${cause}` }
}

/** What /verdict answers. Times are ISO 8601; null: not since the start. */
export function verdictAnswer(source: VerdictSource) {
  const view = verdictOf(source)
  const isUp = view.verdict === 'ok' || view.verdict === 'degraded'
  const lastMessageAt = isoTimeOrNull(source.lastMessageAt)
  const lastAcceptedAt = isoTimeOrNull(lastAcceptedOf(source.providers))
  return { status: isUp ? 200 : 503, value: { ...view, lastMessageAt, lastAcceptedAt } }
}

/** When the service last accepted a payload of any provider, since the start. */
export function lastAcceptedOf(providers: VerdictSource['providers']): EpochMs | null {
  return providers.reduce<EpochMs | null>(
    (late, { lastAcceptedAt: at }) => (at !== null && at > (late ?? -Infinity) ? at : late),
    null,
  )
}

function causeOf(source: VerdictSource): [Verdict, string] {
  const { notReady, holdReason, conditions } = source
  if (notReady !== null) return ['not_receiving', sentence(`Not ready: ${notReady}`)]
  const receiving = conditions.find(({ stops }) => stops === 'receiving')
  if (receiving !== undefined) return ['not_receiving', sentence(receiving.what)]
  if (holdReason !== null) return ['not_receiving', `Acknowledgements are held: ${holdReason}.`]
  const stopped = conditions.filter(({ stops }) => stops === 'delivery')
  const [first] = stopped
  if (first !== undefined && stopsAll(stopped, source.providers)) {
    const texts = stopped.slice(0, namedMax).map(({ what }) => sentence(what))
    const more = stopped.length > namedMax ? ` (${namedMax} of ${stopped.length} conditions)` : ''
    return ['not_delivering', `${[...new Set(texts)].join(' ')}${more}`]
  }
  const waiting = waitingSince(source)
  const problems = conditions.filter(needsPerson)
  if (waiting !== null) {
    const likely = [...problems, ...conditions].find(({ code }) => specOf(code).delays)
    const cause = likely === undefined ? '' : `${sentence(likely.what)} `
    return [
      'not_delivering',
      `${cause}Payloads wait for ${formatDuration(source.now - waiting)}, and none is accepted.`,
    ]
  }
  const [worst] = problems
  if (worst === undefined) return ['ok', progressOf(source)]
  const others = problems.length === 1 ? '' : ` (1 of ${problems.length} problems)`
  return ['degraded', `${worst.code}${others}: ${sentence(worst.what)}`]
}

function needsPerson({ severity }: Condition): boolean {
  return severity !== 'info'
}

/** A condition without a key is about all providers. */
function stopsAll(stopped: readonly Condition[], providers: VerdictSource['providers']): boolean {
  const keys = new Set(stopped.map(({ key }) => key))
  return keys.has(null) || providers.every(({ name }) => keys.has(name))
}

/** Since when the oldest payload waits that could be delivered; null where that is no sign of a fault. */
function waitingSince({ now, countedSince, providers, lanes }: VerdictSource): EpochMs | null {
  if (now - Math.max(countedSince, lastAcceptedOf(providers) ?? 0) < waitsMs) return null
  let oldest: EpochMs | null = null
  for (const lane of lanes) {
    const at = oldestOf(lane)
    // Retries wait by design, and held batches for a person; both have conditions of their own.
    if (lane.role.kind === 'retry' || at === null || lane.pending + lane.sealed <= lane.heldPayloads) continue
    if (oldest === null || at < oldest) oldest = at
  }
  return oldest === null || now - oldest < waitsMs ? null : oldest
}

/** Where nothing is wrong, as far as is known. */
function progressOf({ lanes, providers }: VerdictSource): string {
  if (lanes.every(({ pending, sealed }) => pending + sealed === 0)) return 'Nothing waits for delivery.'
  return lastAcceptedOf(providers) === null ? 'The first payloads wait for an answer.' : 'Delivering.'
}

function agesOf({ now, startedAt, countedSince, lastMessageAt, providers }: VerdictSource): string {
  const accepted = lastAcceptedOf(providers)
  const began = countedSince > startedAt ? 'the spool was lost' : 'the start'
  const start = `since ${began} ${formatAgo(now - countedSince)}`
  if (lastMessageAt === null && accepted === null) return `No message came and nothing was accepted ${start}.`
  const message =
    lastMessageAt === null ? `No message ${start}` : `Last message ${formatAgo(now - lastMessageAt)}`
  return `${message}, ${accepted === null ? `nothing accepted ${start}` : `last accepted ${formatAgo(now - accepted)}`}.`
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`
}
