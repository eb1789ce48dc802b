// types.ts: what ingest needs of the spool and the mapping, and the order between released and arriving
// messages.

import type { Mapper } from '../mapping/mapping.ts'
import type { Spool } from '../spool/spool.ts'

/** The part of the spool that takes messages in. */
export type IntakeSpool = Pick<
  Spool,
  | 'holdReason'
  | 'congested'
  | 'deadLettersFull'
  | 'append'
  | 'addDeadLetter'
  | 'addWindowKey'
  | 'putState'
  | 'keepMessage'
  | 'exchange'
  | 'stateEntries'
  | 'endMessage'
  | 'listen'
>

/** The part of the spool for work on kept messages and dead letters. */
export type KeptSpool = Pick<
  Spool,
  | 'holdReason'
  | 'congested'
  | 'deadLettersFull'
  | 'shelves'
  | 'keptDevices'
  | 'keptMessages'
  | 'deadLetters'
  | 'exchange'
  | 'stateEntries'
  | 'listen'
>

/** What the intake needs of the mapping. */
export type IntakeMapper = Pick<Mapper, 'map' | 'apply' | 'tick' | 'nextTickAt' | 'restore' | 'openParts'>

/** While the kept messages of a device are being released, its later messages are kept behind them. */
export type ReleaseOrder = {
  isReleasing(device: string): boolean
  /** Another message of the device was kept. */
  addBehind(device: string): void
}
