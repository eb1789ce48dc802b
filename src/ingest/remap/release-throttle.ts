// release-throttle.ts: when work on kept messages may go on, and what of the mapping's state it needs. It yields to what
// arrives: nothing is given back while the spool has no room for payloads or dead letters.

import { pause, type Clock } from '../../std/clock.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import type { HoldReason } from '../../domain/event.ts'
import { isDecoderState, type Mapper, type Mapping } from '../../mapping/mapping.ts'
import type { Spool } from '../../spool/spool.ts'

const lookEveryMs = 1000
/** After the store was lost, or somebody else took an entry. */
const againMs = 1000

type PaceSpool = Pick<Spool, 'holdReason' | 'congested' | 'deadLettersFull'>

/** What is full of these gets room by this very work. */
const keptFull: readonly HoldReason[] = ['quarantine_full', 'deferred_full']

/** Resolves when work may go on; false where `signal` aborted. `takesLetters`: it makes fewer of them, not more. */
export async function waitForRoom(
  spool: PaceSpool,
  clock: Clock,
  signal: AbortSignal,
  { takesLetters = false } = {},
): Promise<boolean> {
  const hasRoom = () =>
    !spool.congested &&
    (takesLetters || !spool.deadLettersFull) &&
    (spool.holdReason === null || keptFull.includes(spool.holdReason))
  while (!signal.aborted && !hasRoom()) await pause(clock, lookEveryMs, signal)
  return !signal.aborted
}

/**
 * Does `work` until it ends well: what fails because the store is lost, or because somebody took an entry first, is
 * done again from its start after a pause. What else is thrown is a fault of ours and goes on.
 */
export async function retryUntilDone(
  work: () => Promise<void>,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await work()
      return
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      await pause(clock, againMs, signal)
    }
  }
}

/**
 * Gives mappers whose decoders have the memory of now, and nothing else that is remembered. `onFuture`: what is
 * decided about wrong clocks, where it is not what the config says.
 */
export async function mapperFactory(
  mapping: Mapping,
  spool: Pick<Spool, 'stateEntries'>,
  onFuture?: 'accept' | 'restamp',
): Promise<() => Mapper> {
  const open = () => mapping.open(onFuture)
  if (open().counters().decoders.size === 0) return open
  const entries: [string, Buffer][] = []
  for await (const { key, value } of spool.stateEntries()) if (isDecoderState(key)) entries.push([key, value])
  return () => {
    const mapper = open()
    mapper.restore(entries)
    return mapper
  }
}

export function storeLostFault(): GatewayError {
  return new GatewayError('SPOOL_CLOSED', {
    what: 'Kept messages cannot be read.',
    why: 'The store of the spool is being opened again.',
    act: 'Nothing; it is tried again by itself.',
  })
}
