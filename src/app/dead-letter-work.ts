// dead-letter-work.ts: connects the operations on dead letters with the mapping and the providers in force,
// and deletes dead letters by age where the config sets a retention.

import type { Clock } from '../std/clock.ts'
import type { Emit } from '../domain/event.ts'
import type { Delivery } from '../delivery/delivery.ts'
import {
  createDeadLetterOperations,
  purgeByAge,
  type DeadLetterOperations,
  type DeliveredIds,
} from '../dead-letters/dead-letters.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Spool } from '../spool/spool.ts'
import type { ActiveMapping } from './active-mapping.ts'
import type { GatewayTime } from './our-time.ts'

export type DeadLetterWork = { work: DeadLetterOperations; stop(): Promise<void> }

type Deps = {
  spool: Spool
  clock: Clock
  emit: Emit
  delivery: Pick<Delivery, 'providers'>
  remap: ActiveMapping['remap']
  ourTime: Pick<GatewayTime, 'now' | 'wallOffsetMs'>
  /** Null where the config switches it off. */
  ledger: Pick<Ledger, 'visitDelivered'> | null
}

/** `retentionMs` undefined: nothing is deleted by age. */
export function startDeadLetterWork(
  { spool, clock, emit, delivery, remap, ourTime, ledger }: Deps,
  { retentionMs }: { retentionMs: number | undefined },
): DeadLetterWork {
  const providers = () => delivery.providers().map(({ name }) => name)
  const delivered: DeliveredIds = async (times, visit, signal) =>
    ledger === null
      ? { kind: 'unavailable', why: '`ledger.enabled` is false in the config.' }
      : ledger.visitDelivered(times, visit, signal)
  const ours = { ...clock, now: ourTime.now }
  const work = createDeadLetterOperations({ spool, clock: ours, emit, remap, providers, delivered })
  if (retentionMs === undefined) return { work, stop: () => Promise.resolve() }
  const purgeDeps = { operations: work, clock, clockOffsetMs: ourTime.wallOffsetMs }
  const { stop } = purgeByAge(purgeDeps, { retentionMs })
  return { work, stop }
}
