// sent-in-part.ts: records that lack a field which is lost (lost-fields/): what they have is sent, and the
// message is kept, too, with the names of the fields that were sent. Mapped again, only others are read of
// it, so that nothing is sent twice; while there are none, it stays.

import type { Message } from '../../domain/message.ts'
import { position } from '../lost-fields/watched-fields.ts'
import type { FieldWatch } from '../lost-fields/lost-fields.ts'
import type { MapResult, RecordContext } from '../types.ts'
import type { CompiledSource } from './compiled-source.ts'
import { unmappable, type KeptRejection } from './map-result.ts'

export type Copy = { sent: readonly string[]; rejection: KeptRejection }

/** For the record at hand, which was read; null where it lacks nothing that is lost. */
export function copyOf(
  { name, watched }: CompiledSource,
  context: RecordContext,
  watch: FieldWatch | null,
  isSent: boolean,
): Copy | null {
  if (watch === null || !context.live) return null
  const lost = watch.lostBits(name) & context.judged & ~context.present
  if (lost === 0) return null
  const what = watched.namesOf(lost).map((field) => (field === position ? 'a position' : `the ${field}`))
  const detail = `It was sent without ${what.join(', ')}: the source finds none in its messages since then.`
  return {
    sent: isSent ? watched.namesOf(context.present) : [],
    rejection: { kind: 'refused', reason: 'FIELD_LOST', detail },
  }
}

const stillLost: KeptRejection = {
  kind: 'refused',
  reason: 'FIELD_LOST',
  detail: 'It was sent in part, and the source finds nothing more in it.',
}

/** A record that was sent in part stays where nothing more is found. */
export function rejectionOfCopy(rejection: { kind: string }): KeptRejection | null {
  return rejection.kind === 'quarantined' ? null : stillLost
}

/** The same for a message of one record. */
export function resultOfCopy(result: MapResult, message: Message, source: CompiledSource): MapResult {
  if (result.kind !== 'ignored' && result.kind !== 'unmappable') return result
  const kept = unmappable(message, source, null, stillLost.reason, stillLost.detail)
  return { ...kept, device: 'device' in result ? result.device : null, isCopy: true } as MapResult
}
