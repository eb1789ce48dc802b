// conditions.ts: what is wrong now, as a short list that a person can work through. The store of them; which
// event raises and clears which stands in condition-rules.ts.
//
// A condition is open from its first cause until it is cleared; repeats raise its count. `key` tells conditions
// of one code apart (a provider, a lane, a batch). Some are about something that happened and not about a state:
// those close by themselves when it has not happened again for `quietMs`.
// At most `conditionsMax` are kept; beyond that the mildest gives way and is counted as `hidden`.

import type { Clock, EpochMs } from '../../std/clock.ts'
import { bounded } from '../../std/quote.ts'

const conditionsMax = 64

const severities = ['info', 'warning', 'error', 'critical'] as const
type Severity = (typeof severities)[number]

export type ConditionText = { what: string; why: string; act: string }

export type Condition = ConditionText & {
  code: ConditionCode
  key: string | null
  severity: Severity
  since: EpochMs
  lastAt: EpochMs
  count: number
}

/** Every code, with one sentence for the README. Codes are API, as those of std/gateway-error.ts. */
export const conditionCodes = {
  ENDPOINT_UNAVAILABLE: 'The ingestion API does not take batches; sending is down to one probe at a time.',
  ENDPOINT_UNAUTHORIZED: 'The ingestion API refuses the signature, the account or the time of our requests.',
  CREDENTIALS_MISSING: 'No credentials were found to sign with.',
  CREDENTIALS_STALE: 'The credentials cannot be refreshed; the old ones go on to serve.',
  CLOCK_OFF: 'The clock of this machine is off by a minute or more; signatures are corrected.',
  PROVIDER_UNKNOWN: 'Payloads wait for a provider that the config does not have; they are kept.',
  BATCH_STUCK: 'One batch fails while others succeed; it steps aside and is tried again later.',
  WRAPPER_REFUSED: 'The ingestion API refuses batches as such; they are held.',
  ANSWERS_INCONSISTENT: 'Answers of the ingestion API contradict themselves or its specification.',
  DEAD_LETTERS: 'Messages or payloads became dead letters since the start, and there are some still.',
  MESSAGES_DROPPED: 'QoS 0 messages were lost.',
  SPOOL_FULL: 'The spool reached its limit; acks are held.',
  DISK_LOW: 'The disk of the spool is nearly full; acks are held.',
  DEAD_LETTERS_FULL: 'The dead letters reached their limit; acks of messages that cannot be mapped are held.',
  DEAD_LETTERS_PURGED: 'Dead letters were deleted, by hand or by age: their data is lost.',
  QUARANTINE_FULL: 'The messages in quarantine reached their limit; acks are held.',
  DEFERRED_FULL: 'The messages that wait to be mapped reached their limit; acks are held.',
  STATE_FULL: 'The state of the mapping reached its limit; acks are held.',
  STORE_LOST: 'A write to the spool failed; nothing is acknowledged until it is open again.',
  CHUNK_DAMAGED: 'Stored payloads are damaged and were set aside.',
  CONSERVATION_BROKEN: 'The counts of a lane, or of the messages received, do not add up.',
  RECORD_DAMAGED: 'State of the mapping or a kept message is damaged and was set aside.',
  RECORDS_UNBALANCED: 'The counts of kept messages or of mapping state do not add up.',
  MAPPING_STALE: 'The config or the device table changed and is wrong; the mapping of before goes on.',
  MODEL_UNKNOWN: 'Devices have no known model, so fields that depend on it are left out.',
  OUR_CLOCK_SUSPECT: 'Most devices are off by as much: it is rather the clock of this machine.',
  EXPRESSIONS_STALLED: 'JSONata expressions cannot be evaluated; their messages wait on the disk.',
  LEDGER_UNAVAILABLE: 'The ledger cannot be written or asked; delivery goes on.',
  LEDGER_SET_ASIDE: 'Records of the ledger were damaged and are missing from it; delivery goes on.',
  LISTENER_FAILED: 'Devices cannot connect to one of the listeners.',
} as const

export type ConditionCode = keyof typeof conditionCodes

type Raise = ConditionText & {
  code: ConditionCode
  key?: string | null
  severity: Severity
  /** How many more times it happened; 1 unless said otherwise. */
  times?: number
  /** Characters of `why` that are kept; the usual bound unless said otherwise. */
  whyLengthMax?: number
  /** Closes by itself when it has not happened again for so long. */
  quietMs?: number
}

export type Conditions = {
  raise(raise: Raise): void
  clear(code: ConditionCode, key?: string | null): void
  /** Worst first, then oldest first. */
  open(): readonly Condition[]
  /** Conditions that did not fit in since the start. */
  readonly hidden: number
}

type Entry = { condition: Condition; quietMs: number; quietFrom: number }

export function createConditions({ clock }: { clock: Clock }): Conditions {
  const entries = new Map<string, Entry>()
  let hidden = 0

  return {
    raise,
    clear: (code, key = null) => void entries.delete(nameOf(code, key)),
    open,
    get hidden() {
      return hidden
    },
  }

  function raise(raise: Raise): void {
    const { code, key = null, severity, times = 1, quietMs = Infinity, what, why, act } = raise
    const name = nameOf(code, key)
    const known = entries.get(name)
    if (!known) makeRoom()
    const now = clock.now()
    entries.set(name, {
      condition: {
        code,
        key: key === null ? null : bounded(key, 100),
        severity,
        since: known?.condition.since ?? now,
        lastAt: now,
        count: (known?.condition.count ?? 0) + times,
        what: bounded(what, 300),
        why: bounded(why, raise.whyLengthMax ?? 500),
        act: bounded(act, 500),
      },
      quietMs,
      quietFrom: clock.monotonic(),
    })
  }

  function makeRoom(): void {
    if (entries.size < conditionsMax) return
    let mildest: string | undefined
    let rankMin = Infinity
    for (const [name, { condition }] of entries) {
      // `<` keeps the oldest of the mildest as the one that goes: what goes on is raised again.
      if (rankOf(condition) < rankMin) {
        rankMin = rankOf(condition)
        mildest = name
      }
    }
    if (mildest !== undefined) entries.delete(mildest)
    hidden += 1
  }

  function open(): readonly Condition[] {
    const now = clock.monotonic()
    for (const [name, { quietMs, quietFrom }] of entries) {
      if (now - quietFrom >= quietMs) entries.delete(name)
    }
    return [...entries.values()]
      .map(({ condition }) => condition)
      .sort((a, b) => rankOf(b) - rankOf(a) || a.since - b.since)
  }
}

function nameOf(code: ConditionCode, key: string | null): string {
  return key === null ? code : `${code}|${key}`
}

function rankOf({ severity }: Condition): number {
  return severities.indexOf(severity)
}
