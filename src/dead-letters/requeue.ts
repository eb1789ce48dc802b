// requeue.ts: payloads of dead letters go to the end of their live lane, in groups of one atomic write each; messages go
// through the mapping that is in force (ingest/quarantine/dead-letter-remap.ts). Letters that come while it runs are left for the next time,
// so that what is refused at once again does not go round for ever.

import { pause, type Clock } from '../std/clock.ts'
import { droppedByPerson, type DeadLetter } from '../domain/dead-letter.ts'
import type { ProviderName } from '../domain/ids.ts'
import type { MappedPayload } from '../domain/payload.ts'
import type { DeadLetterEntry, Exchange, Spool } from '../spool/spool.ts'
import type { DeadLetterCounters, DeadLetterDeps, DeadLetterQuery, RemapOutcome } from './dead-letters.ts'
import { requeuedPayload } from './payload-validation.ts'
import { selectDeadLetters } from './select.ts'

export type RequeueReport = {
  dryRun: boolean
  /** Payloads that go to their live lanes. */
  payloads: number
  /** Letters that stay, by why. */
  left: Record<string, number>
  /** Ids that are no dead letters. */
  missing: readonly string[]
  /** What became of letters of the mapping; null where none was meant. */
  remap: RemapOutcome | null
}

/** Of one write; a crash leaves whole groups. */
const groupPayloadsMax = 500
const groupLengthMax = 1024 * 1024
const lookEveryMs = 250
const droppedWhy = `it was dropped from quarantine by hand: ask for it with --reason ${droppedByPerson}`

export async function requeue(
  deps: DeadLetterDeps,
  counters: DeadLetterCounters,
  query: DeadLetterQuery,
  { dryRun }: { dryRun: boolean },
  signal: AbortSignal,
): Promise<RequeueReport> {
  const { spool, clock, emit, remap } = deps
  const startedAt = clock.now()
  const left: Record<string, number> = {}
  const seen = new Set<string>()
  let meant = 0
  let messages = 0
  const group = createGroup(deps, dryRun, signal)
  try {
    for await (const { id, deadLetter: letter } of selectDeadLetters(spool, query)) {
      if (signal.aborted) break
      if (cameMeanwhile(letter)) continue
      if (query.ids !== undefined) seen.add(id)
      const payload = isMessage(letter) ? null : payloadOf(letter)
      if (payload === null) messages += 1
      else if (typeof payload === 'string') left[payload] = (left[payload] ?? 0) + 1
      else {
        meant += 1
        await group.add(payload, id)
      }
    }
    await group.end()
  } finally {
    // Also where a later group found a letter gone: these are on their way.
    counters.requeued += group.done
    if (group.done > 0) emit({ kind: 'dead_letters_requeued', deadLetters: group.done, payloads: group.done })
  }
  const mapped =
    messages > 0 && !signal.aborted
      ? await remap({ reason: null, source: null, dryRun, deadLetters: messagesOf() }, signal)
      : null
  const missing = (query.ids ?? []).filter((id) => !seen.has(id))
  return { dryRun, payloads: dryRun ? meant : group.done, left, missing, remap: mapped }

  async function* messagesOf(): AsyncGenerator<DeadLetterEntry> {
    for await (const entry of selectDeadLetters(spool, { ...query, stage: 'mapping' })) {
      if (!cameMeanwhile(entry.deadLetter) && isMessage(entry.deadLetter)) yield entry
    }
  }

  /** A letter of the future is of a clock that was set back since. */
  function cameMeanwhile({ at }: DeadLetter): boolean {
    return query.ids === undefined && at > startedAt && at <= clock.now()
  }

  function isMessage(letter: DeadLetter): boolean {
    return letter.stage === 'mapping' && !isLeftAlone(letter)
  }

  /** Or why it stays. */
  function payloadOf(letter: DeadLetter): MappedPayload | string {
    if (isLeftAlone(letter)) return droppedWhy
    const { provider, payload, payloadId } = letter
    const known = providerOf(deps, provider)
    if (known === null) return `the provider ${JSON.stringify(provider)} is not in the config`
    if (payloadId === null || typeof payload !== 'object' || payload === null) return 'it holds no payload'
    return requeuedPayload(known, payloadId, payload)
  }

  /** Somebody decided against it: it is meant by its id or its reason only. */
  function isLeftAlone({ reason }: DeadLetter): boolean {
    return reason === droppedByPerson && query.ids === undefined && query.reason === undefined
  }
}

export function providerOf({ providers }: DeadLetterDeps, name: string | null): ProviderName | null {
  return providers().find((provider) => provider === name) ?? null
}

type Group = {
  /** Payloads that are durable. */
  readonly done: number
  add(payload: MappedPayload, take: string | null): Promise<void>
  end(): Promise<void>
}

/** Collects payloads until a write is worth it. */
export function createGroup(deps: DeadLetterDeps, dryRun: boolean, signal: AbortSignal): Group {
  let payloads: MappedPayload[] = []
  let take: string[] = []
  let length = 0
  let done = 0
  return {
    get done() {
      return done
    },
    add,
    end,
  }

  async function add(payload: MappedPayload, id: string | null): Promise<void> {
    if (dryRun) return
    payloads.push(payload)
    if (id !== null) take.push(id)
    length += payload.json.length
    if (payloads.length >= groupPayloadsMax || length >= groupLengthMax) await end()
  }

  async function end(): Promise<void> {
    if (payloads.length === 0) return
    const exchange: Exchange = { take, payloads, deadLetters: [], stateChanges: [] }
    payloads = []
    take = []
    length = 0
    await waitForRoom(deps, signal)
    if (signal.aborted) return
    await deps.spool.exchange(exchange)
    done += exchange.payloads.length
  }
}

/** Resolves when the spool takes payloads, or `signal` aborted. Full shelves and letters are no reason to wait. */
export async function waitForRoom(
  { spool, clock }: { spool: Pick<Spool, 'holdReason' | 'congested'>; clock: Clock },
  signal: AbortSignal,
): Promise<void> {
  const blocks = () =>
    spool.congested || ['store_lost', 'disk_low', 'spool_full'].includes(spool.holdReason ?? '')
  while (blocks() && (await pause(clock, lookEveryMs, signal)));
}
