// refusal-hint.ts: what a person who reads a dead letter needs beside its reason, where a value was missing:
// the keys of the message that nothing reads, and the model that was looked up.
//
// It is made for refused messages only. Its cost is bounded by `limits`.

import { quote } from '../../std/quote.ts'
import type { SourcePlan } from '../compile/source-plan.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import { findUnread, unreadText } from '../path/unread-keys.ts'
import type { Place, Rejection } from '../types.ts'

const reasons = new Set(['NO_DEVICE', 'NO_TIME', 'HALF_POSITION', 'NOTHING_TO_SEND'])

/** Values of a message that are looked at. A flood of such messages must stay cheap. */
const limits = { visitsMax: 64 }

/** The rejection of the record at hand, with more detail where something was missing. */
export function hintedRejection(
  source: Pick<SourcePlan, 'reads' | 'hasFamilies'>,
  rejection: Rejection,
  place: Place,
  entry: DeviceEntry | null,
): Rejection {
  if (rejection.kind !== 'refused' || !reasons.has(rejection.reason)) return rejection
  const { record: ofRecord, part } = source.reads()
  // A message of a source that collects is refused before its value is.
  const reads = rejection.reason === 'NO_DEVICE' ? (part ?? ofRecord) : ofRecord
  const unread = unreadText(findUnread(reads, place.record, [place], limits))
  const ofModel = source.hasFamilies && rejection.reason === 'NOTHING_TO_SEND' && entry?.family === 0
  const detail = [rejection.detail, unread, ofModel ? modelText(entry) : '']
  return { ...rejection, detail: detail.filter((sentence) => sentence !== '').join(' ') }
}

function modelText({ model }: DeviceEntry): string {
  return model === null
    ? 'The device has no model, and values of the source depend on it.'
    : `The model ${quote(model, 40)} of the device is in no family of the source.`
}
