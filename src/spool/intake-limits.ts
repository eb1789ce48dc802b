// intake-limits.ts: may messages come in? Owner of invariant 8: the spool stays within its limit.
//
// The reasons, the gravest first: store_lost, disk_low, spool_full, quarantine_full, deferred_full, state_full. Nothing
// is refused or dropped at a bound: acks are held, so devices keep their data, and what makes room (settles, exchanges)
// goes on. Full dead letters are no reason to hold everything: who would bury something waits (Spool.lettersFull).

import { formatSize } from '../std/quantity.ts'
import type { HoldReason } from '../domain/event.ts'
import type { SpoolOptions } from './spool.ts'
import { usedBytes, type SpoolState } from './session-state.ts'

/** Intake resumes when this share of the limit is free again, so that it does not flap. */
export const resumeShare = 0.98

/** What intake may use; the rest is kept for settling. */
export function limitOf({ bytesMax, reserveBytes }: SpoolOptions): number {
  return bytesMax - reserveBytes
}

export type HoldView = { hold: HoldReason | null; diskLow: boolean; diskBytes: number }

/** `state` is null while the store is lost. */
export function reasonToHold(
  state: SpoolState | null,
  { hold, diskLow, diskBytes }: HoldView,
  options: SpoolOptions,
): HoldReason | null {
  if (state === null) return 'store_lost'
  if (diskLow) return 'disk_low'
  const used = Math.max(usedBytes(state), diskBytes - options.reserveBytes)
  const isFull = (reason: HoldReason, bytes: number, bytesMax: number) =>
    bytes >= bytesMax * (hold === reason ? resumeShare : 1)
  if (isFull('spool_full', used, limitOf(options))) return 'spool_full'
  const { keptBytes, parts } = state
  if (isFull('quarantine_full', keptBytes.quarantine, options.quarantineBytesMax)) return 'quarantine_full'
  if (isFull('deferred_full', keptBytes.deferred, options.deferredBytesMax)) return 'deferred_full'
  return isFull('state_full', parts.bytes, options.stateBytesMax) ? 'state_full' : null
}

/** Nothing more may be buried, but for what was acknowledged already. */
export function areLettersFull({ letters }: SpoolState, wereFull: boolean, options: SpoolOptions): boolean {
  return letters.bytes >= options.deadLetterBytesMax * (wereFull ? resumeShare : 1)
}

export function detailOf(reason: HoldReason, options: SpoolOptions): string {
  const { bytesMax, freeBytesMin, quarantineBytesMax, deferredBytesMax, stateBytesMax } = options
  const details: Record<HoldReason, string> = {
    store_lost: 'a write to the spool failed; it is being opened anew',
    disk_low: `less than ${formatSize(freeBytesMin)} is free on the file system of the spool`,
    spool_full: `${formatSize(limitOf(options))} are used, the rest of ${formatSize(bytesMax)} is kept for settling`,
    quarantine_full: `the messages in quarantine have reached their ${formatSize(quarantineBytesMax)}`,
    deferred_full: `the messages that wait to be mapped have reached their ${formatSize(deferredBytesMax)}`,
    state_full: `the state of the mapping has reached its ${formatSize(stateBytesMax)}`,
  }
  return details[reason]
}
