// release-throttle.ts: decides when work on kept messages may continue, and which mapping state it needs. It
// yields to messages that arrive: nothing is released while the spool has no room for payloads or dead
// letters, unless it is full of what is kept.

import { pause, type Clock } from '../../std/clock.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import { isDecoderState, type Mapper, type Mapping } from '../../mapping/mapping.ts'
import { isFullOfKept, type Spool } from '../../spool/spool.ts'

const checkEveryMs = 1000
/** After the store was lost, or an entry was taken by other work. */
const retryMs = 1000

type ThrottleSpool = Pick<Spool, 'holdReason' | 'congested' | 'deadLettersFull' | 'totals'>

/** Resolves with true when work may continue, with false where `signal` aborted. */
export async function waitForRoom(
  spool: ThrottleSpool,
  clock: Clock,
  signal: AbortSignal,
  { takesDeadLetters = false } = {},
): Promise<boolean> {
  const hasRoom = () =>
    !spool.congested() &&
    (takesDeadLetters || !spool.deadLettersFull()) &&
    (spool.holdReason() === null || isFullOfKept(spool))
  while (!signal.aborted && !hasRoom()) await pause(clock, checkEveryMs, signal)
  return !signal.aborted
}

/**
 * Repeats `work` from its start until it succeeds: it fails where the store is lost, or where an entry was
 * taken by other work. Any other error is a fault of the gateway and is thrown.
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
      await pause(clock, retryMs, signal)
    }
  }
}

/**
 * Returns a function that opens mappers with the present state of the decoders and no other state. `onFuture`
 * replaces what the config says about clocks that are ahead.
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
    what: 'Cannot read the kept messages.',
    why: 'The store of the spool is being reopened.',
    act: 'Nothing to do; the gateway tries again.',
  })
}
