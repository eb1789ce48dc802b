// spool-options.ts: what the spool is given: the world it lives in, and its bounds. config.ts makes them from the config.

import type { Clock, EpochMs } from '../std/clock.ts'
import type { Emit } from '../domain/event.ts'
import type { NewId, ProviderName } from '../domain/ids.ts'
import type { Disk, OpenStore } from '../storage/storage.ts'

/** Whether a payload with this device time is no longer live when it comes: then it goes to a backfill lane. */
export type IsLate = (provider: ProviderName, deviceTime: EpochMs) => boolean

export type SpoolDeps = {
  clock: Clock
  newId: NewId
  random: () => number
  emit: Emit
  openStore: OpenStore
  disk: Disk
  /** Without it no payload is late. Asked once a payload, so it must be quick. */
  isLate?: IsLate
}

export type SpoolOptions = {
  path: string
  bytesMax: number
  freeBytesMin: number
  deadLetterBytesMax: number
  quarantineBytesMax: number
  deferredBytesMax: number
  stateBytesMax: number
  /** Backfill lanes of one provider; at the bound the live lane stays what it is. */
  backfillLanesMax: number
  receiptBytesMax: number
  /** Part of `bytesMax` that intake does not get: settles need room too. */
  reserveBytes: number
  ballastBytes: number
  window: { windowMs: number; keysMax: number }
  group: { chunkPayloadsMax: number; chunkBytesMax: number }
  /** A write takes so many bytes of messages at most, and one message more. */
  groupBytesMax: number
  uncommittedBytesMax: number
  recentBytesMax: number
  diskCheckMs: number
  forgetMs: number
  reopen: { firstMs: number; mostMs: number; attemptsMax: number }
}
