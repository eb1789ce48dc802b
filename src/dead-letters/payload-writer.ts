// payload-writer.ts: writes requeued and imported payloads to their live lanes, a group in one atomic write
// that also removes their dead letters. A crash leaves whole groups.

import { pause, type Clock } from '../std/clock.ts'
import type { ProviderName } from '../domain/ids.ts'
import type { MappedPayload } from '../domain/payload.ts'
import { isFullOfKept, type Spool } from '../spool/spool.ts'
import type { DeadLetterDeps } from './types.ts'

export type PayloadWriter = {
  /** Payloads that are durable. */
  readonly written: number
  /** `deadLetterId` is removed in the same write; null where the payload comes from a file. */
  add(payload: MappedPayload, deadLetterId: string | null): Promise<void>
  flush(): Promise<void>
}

export type WorkOptions = { dryRun: boolean; signal: AbortSignal }

const groupPayloadsMax = 500
const groupLengthMax = 1024 * 1024
const spaceCheckMs = 250

export function createPayloadWriter(deps: DeadLetterDeps, { dryRun, signal }: WorkOptions): PayloadWriter {
  let payloads: MappedPayload[] = []
  let take: string[] = []
  let length = 0
  let written = 0
  return {
    get written() {
      return written
    },
    add,
    flush,
  }

  async function add(payload: MappedPayload, deadLetterId: string | null): Promise<void> {
    if (dryRun) return
    payloads.push(payload)
    if (deadLetterId !== null) take.push(deadLetterId)
    length += payload.json.length
    if (payloads.length >= groupPayloadsMax || length >= groupLengthMax) await flush()
  }

  async function flush(): Promise<void> {
    if (payloads.length === 0) return
    const exchange = { take, payloads, deadLetters: [], stateChanges: [] }
    payloads = []
    take = []
    length = 0
    await waitForSpace(deps, signal)
    if (signal.aborted) return
    await deps.spool.exchange(exchange)
    written += exchange.payloads.length
  }
}

/**
 * Resolves when the spool accepts payloads, or `signal` aborts. Full quarantine or dead letters do not matter
 * here, also where they fill the whole spool.
 */
export async function waitForSpace(
  { spool, clock }: { spool: Pick<Spool, 'holdReason' | 'congested' | 'totals'>; clock: Clock },
  signal: AbortSignal,
): Promise<void> {
  const isFull = () =>
    spool.congested() ||
    (['store_lost', 'disk_low', 'spool_full'].includes(spool.holdReason() ?? '') && !isFullOfKept(spool))
  while (isFull() && (await pause(clock, spaceCheckMs, signal)));
}

/** Null where the config does not know the provider. */
export function knownProvider({ providers }: DeadLetterDeps, name: string | null): ProviderName | null {
  return providers().find((provider) => provider === name) ?? null
}
