// record-context.ts: how a record ended that became no payload. The parts of a mapping say it to the context; the mapper makes
// a result of it.

import type { Message } from '../../domain/message.ts'
import type { RecordContext } from '../reasons.ts'
import { ignored, quarantined, unmappable, type MapResult } from './map-result.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import type { CompiledSource } from './record-mapper.ts'

/** `omitted` counts what is left out, keyed `source|field|why`. */
export function createRecordContext(omitted: Map<string, number>): RecordContext {
  const context: RecordContext = {
    rejection: { kind: 'ignored', reason: '' },
    refuse(reason, detail) {
      context.rejection = { kind: 'refused', reason, detail }
      return null
    },
    refuseByRule({ reason, detail }) {
      context.rejection = { kind: 'refused', reason, detail }
      return null
    },
    ignore(reason) {
      context.rejection = { kind: 'ignored', reason }
      return null
    },
    quarantine(reason, detail) {
      context.rejection = { kind: 'quarantined', reason, detail }
      return null
    },
    omit(key) {
      omitted.set(key, (omitted.get(key) ?? 0) + 1)
      return undefined
    },
    captures: [],
    motionSpeed: Number.NaN,
    zeroPosition: false,
  }
  return context
}

/** What becomes of the message; a source or device that is not known cannot ignore or quarantine anything. */
export function resultOf(
  ending: RecordContext['rejection'],
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
