// model-world.ts: the parts of a random history of model.ts.

import type { PayloadSettlement } from '../../src/domain/settlement.ts'
import type { Batch, Spool } from '../../src/spool/spool.ts'
import type { FakeClock } from '../support/fake-clock.ts'
import type { MemoryDisk } from '../support/memory-store.ts'
import type { Random } from '../support/random.ts'
import { payloadNamed, type createMemoryFile } from '../support/spool-world.ts'
import type { Rules } from './rules.ts'

export type Message = {
  name: string
  parts: string[]
  /** A part waits in the state of the mapping (state-steps.ts), a kept message on a shelf (kept-steps.ts). */
  kind: 'payloads' | 'deadLetter' | 'part' | 'kept'
  provider: string
  state: 'new' | 'sent' | 'acked'
}

export type World = {
  seed: number
  random: Random
  clock: FakeClock
  disk: MemoryDisk
  /** The file of the high-water mark, which survives a crash. */
  mark: ReturnType<typeof createMemoryFile>
  rules: Rules
  spool: Spool
  mapping: Mapping
  shelves: Shelves
  lanes: Lanes
  returns: Returns
  /** Payloads that the server keeps which messages come from (return-steps.ts). */
  engine: Parked[]
  /** What that server does where the process ends before something is durable. */
  ifLost: Set<() => void>
  messages: Message[]
  /** The answer of the service for a batch that is not settled yet. */
  answered: Map<string, { batch: Batch; settlements: PayloadSettlement[] }>
  /** Batches whose settle is running. */
  settling: Set<string>
  /** Running work of the current session. */
  running: Set<Promise<unknown>>
  opening: number
  steps: string[]
  ids: number
  ackOrder: { given: number; asked: number }
}

export type Mapping = {
  /** The state was read; false from the loss of the store until it is read again. */
  readonly restored: boolean
  /**
   * Takes a part into a record, in the message that is being appended. `isLate`: encoded
   * with its group; null: at once, in a record that exchanges change, too.
   */
  add(
    spool: Pick<Spool, 'putState' | 'putLateState'>,
    part: string,
    options: { isLate: boolean | null },
  ): void
  /** What `add` would write, for exchanges. */
  addLater(part: string): { key: string; value: Buffer }
  /** The parts of a record that closes; empty where there is none. */
  close(key: string): string[]
  openKeys(): string[]
  follow(spool: Spool): Promise<void>
}

export type Seen = { id: string; name: string }

/** Entries that were read at some time, and those that running exchanges take. */
export type Shelves = { seen: Seen[]; taking: Set<string>; exchanged: number; refused: number }

export type Parked = { name: string; json: string; attempts: number; provider: string }

/** Payloads that were durably returned, and those that came back. */
export type Returns = { parked: number; takenBack: number }

/** Number of durable changes of lanes and batches. */
export type Lanes = {
  sealedTogether: number
  rotated: number
  resealed: number
  operationSet: number
  heldSet: number
  followed: number
  dropped: number
}

/** Payloads of one name are always late or never. */
export function isLateName(name: string): boolean {
  return name.startsWith('m') && name.charCodeAt(1) % 3 === 0
}

/** A payload of the model. To the spool, a device time below 0 is late. */
export function payloadOf(name: string, options: { provider: string; padding?: number }) {
  return payloadNamed(name, { ...options, deviceTime: isLateName(name) ? -1 : 1 })
}

/** Work in the background. A lost store rejects it; any other rejection is a failure. */
export function track(world: World, work: Promise<unknown>, allowed: readonly string[] = []): void {
  const { running } = world
  const codes: unknown[] = ['SPOOL_WRITE_FAILED', 'SPOOL_CLOSED', ...allowed]
  const tracked = work
    .catch((error: unknown) => {
      const code = error instanceof Error && 'code' in error ? error.code : undefined
      if (!codes.includes(code)) world.rules.note(error)
    })
    .finally(() => running.delete(tracked))
  running.add(tracked)
}
