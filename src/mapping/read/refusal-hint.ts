// refusal-hint.ts: what a person who reads a dead letter needs beside its reason, where a value was missing:
// the keys of the message that nothing reads, and the model that was looked up.
//
// It is made for refused messages only. Its cost is bounded by `limits`.

import { quote } from '../../std/quote.ts'
import type { SourceConfig } from '../config.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import {
  compileFindUnread,
  compileFindUnreadCollected,
  compileFindUnreadInParts,
  unreadText,
  type FindUnread,
} from '../path/unread-keys.ts'
import type { RecordContext, Rejection } from '../types.ts'

/** The rejection of the record at hand, with more detail where something was missing. */
export type HintRefusal = (
  rejection: Rejection,
  context: RecordContext,
  entry: DeviceEntry | null,
) => Rejection

const reasons = new Set(['NO_DEVICE', 'NO_TIME', 'HALF_POSITION', 'NOTHING_TO_SEND'])

/** Values of a message that are looked at. A flood of such messages must stay cheap. */
const limits = { visitsMax: 64 }

export function compileRefusalHint(source: SourceConfig): HintRefusal {
  // Compiled at the first refusal: most sources never have one.
  let inRecord: FindUnread | null | undefined
  let inPart: FindUnread | null | undefined
  const hasFamilies = Object.keys(source.families).length > 0
  return (rejection, { record, root, up }, entry) => {
    if (rejection.kind !== 'refused' || !reasons.has(rejection.reason)) return rejection
    const find = source.coalesce && rejection.reason === 'NO_DEVICE' ? ofPart() : ofRecord()
    const unread = find === null ? '' : unreadText(find(record, [{ record, root, up }]))
    const ofModel = hasFamilies && rejection.reason === 'NOTHING_TO_SEND' && entry?.family === 0
    const detail = [rejection.detail, unread, ofModel ? modelText(entry) : '']
    return { ...rejection, detail: detail.filter((sentence) => sentence !== '').join(' ') }
  }

  function ofRecord(): FindUnread | null {
    return (inRecord ??= compileFindUnread(source, limits) ?? compileFindUnreadCollected(source, limits))
  }

  /** A message of a source that collects is refused before its value is. */
  function ofPart(): FindUnread | null {
    return (inPart ??= compileFindUnreadInParts(source, limits))
  }
}

function modelText({ model }: DeviceEntry): string {
  return model === null
    ? 'The device has no model, and values of the source depend on it.'
    : `The model ${quote(model, 40)} of the device is in no family of the source.`
}
