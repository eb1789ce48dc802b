// map-errors.ts: how a record ended that became no payload. The parts of a mapping say it to the attempt; the mapper makes
// a result of it.

import type { Message } from '../domain/message.ts'
import type { Attempt } from './refusals.ts'
import { ignored, quarantined, unmappable, type MapResult } from './map-result.ts'
import type { DeviceEntry } from './devices/device-table.ts'
import type { CompiledSource } from './record-mapper.ts'

/** `omitted` counts what is left out, keyed `source|field|why`. */
export function createAttempt(omitted: Map<string, number>): Attempt {
  const attempt: Attempt = {
    ending: { kind: 'ignored', reason: '' },
    refuse(reason, detail) {
      attempt.ending = { kind: 'refused', reason, detail }
      return null
    },
    refuseFor({ reason, detail }) {
      attempt.ending = { kind: 'refused', reason, detail }
      return null
    },
    ignore(reason) {
      attempt.ending = { kind: 'ignored', reason }
      return null
    },
    quarantine(reason, detail) {
      attempt.ending = { kind: 'quarantined', reason, detail }
      return null
    },
    omit(key) {
      omitted.set(key, (omitted.get(key) ?? 0) + 1)
      return undefined
    },
    captures: [],
    motionSpeed: Number.NaN,
    nowhere: false,
  }
  return attempt
}

/** What becomes of the message; a source or device that is not known cannot ignore or quarantine anything. */
export function resultOf(
  ending: Attempt['ending'],
  message: Message,
  source: CompiledSource | null,
  entry: DeviceEntry | null,
): MapResult {
  switch (ending.kind) {
    case 'ignored':
      return source === null
        ? unmappable(message, source, entry, 'NO_SOURCE', ending.reason)
        : ignored(source, ending.reason)
    case 'quarantined':
      return source === null || entry === null
        ? unmappable(message, source, entry, ending.reason, ending.detail)
        : quarantined(message, source, entry, ending)
    case 'refused':
    default:
      return unmappable(message, source, entry, ending.reason, ending.detail)
  }
}
