// dead-letter-work.ts: dead letters with the mapping and the providers that are in force, and their age where the config
// bounds it.

import type { Clock } from '../std/clock.ts'
import type { Emit } from '../domain/event.ts'
import type { Delivery } from '../delivery/delivery.ts'
import {
  createDeadLetterOperations,
  purgeByAge,
  type DeadLetterOperations,
} from '../dead-letters/dead-letters.ts'
import type { Spool } from '../spool/spool.ts'
import type { ClockOffset } from './clock-offset.ts'
import type { ActiveMapping } from './active-mapping.ts'

export type DeadLetterWork = { work: DeadLetterOperations; stop(): Promise<void> }

type Deps = {
  spool: Spool
  clock: Clock
  emit: Emit
  delivery: Pick<Delivery, 'providers'>
  inForce: Pick<ActiveMapping, 'remap'>
  offset: Pick<ClockOffset, 'offsetMs'>
}

/** `retentionMs` undefined: nothing is deleted by age. */
export function startDeadLetterWork(
  deps: Deps,
  { retentionMs }: { retentionMs: number | undefined },
): DeadLetterWork {
  const { spool, clock, emit, delivery, inForce, offset } = deps
  const providers = () => delivery.providers().map(({ name }) => name)
  const work = createDeadLetterOperations({ spool, clock, emit, remap: inForce.remap, providers })
  if (retentionMs === undefined) return { work, stop: () => Promise.resolve() }
  const { stop } = purgeByAge({ operations: work, clock, clockOffsetMs: offset.offsetMs }, { retentionMs })
  return { work, stop }
}
