// sent-in-part.ts: records that lack a field which is lost (lost-fields/): what they have is sent, and the
// message is kept, too, with the names of the fields that were sent and of those that are lost. Mapped again,
// only fields that were not sent are read of it, so that nothing is sent twice. It stays until it has given
// all fields that were lost, or until devices of its source have sent the others again: then it has none.

import type { RecordMark } from '../../domain/message.ts'
import { position, type WatchedFields } from '../lost-fields/watched-fields.ts'
import type { FieldView } from '../lost-fields/lost-fields.ts'
import type { RecordContext } from '../types.ts'
import type { SourcePlan } from '../compile/source-plan.ts'
import type { KeptRejection } from './map-result.ts'

/** What a record was sent with, and what it lacks. */
export type SentInPart = Required<Pick<RecordMark, 'sent' | 'lost'>>

/** For the record at hand, which was read; null where it lacks nothing that is lost. */
export function partOf(
  { name, watched }: SourcePlan,
  { present, judged }: Pick<RecordContext, 'present' | 'judged'>,
  device: string | undefined,
  view: FieldView | null,
  isSent: boolean,
): SentInPart | null {
  const lost = (view?.lostBits(name, device) ?? 0) & judged & ~present
  return lost === 0 ? null : { sent: isSent ? watched.namesOf(present) : [], lost: watched.namesOf(lost) }
}

/** What remains of a record that was sent in part, after it was read again; null where nothing does. */
export function remainderOf(
  { name, watched }: SourcePlan,
  { present, judged, arrivedAt }: Pick<RecordContext, 'present' | 'judged' | 'arrivedAt'>,
  view: FieldView | null,
  { sent = [], lost = [] }: Pick<RecordMark, 'sent' | 'lost'>,
): SentInPart | null {
  // It could not be read.
  if (judged === 0) return { sent, lost }
  const found = presentNames(watched, present)
  const left = lost.filter(
    (field) => !found.includes(field) && view?.hasSince(name, field, arrivedAt) !== true,
  )
  return left.length === 0 ? null : { sent: [...sent, ...found], lost: left }
}

function presentNames(watched: WatchedFields, present: number): readonly string[] {
  return present === 0 ? [] : watched.namesOf(present)
}

export function rejectionOf({ lost }: SentInPart): KeptRejection {
  const what = lost.map((field) => (field === position ? 'a position' : `the ${field}`)).join(', ')
  const detail = `It was sent without ${what}: the source found none in its messages then.`
  return { kind: 'refused', reason: 'FIELD_LOST', detail }
}

/** What is missing of a record that was sent is neither thinned nor merged. */
export function waits({ thin, merge }: SourcePlan, mark: RecordMark | undefined): boolean {
  return (thin !== null || merge !== null) && mark?.sent === undefined
}
