// dead-letter-conditions.ts: dead letters that are kept, by the numbers of the stages: not each of them has
// an event of its own. Those of this run are an error, those from before the start a warning.
//
//   kept   made since the start   DEAD_LETTERS   DEAD_LETTERS_WAITING
//   3      0                                     3
//   5      2                      2              3
//   1      9                      1
//   0      9
//
// Each reason, with its source, is a cause: another one is news. They are forgotten when none is kept, and
// when some of them left: which reasons the others have is not counted here.

import { plural } from '../../std/quantity.ts'
import { bounded, quote } from '../../std/quote.ts'
import type { GatewayEvent } from '../../domain/event.ts'
import { fromText } from '../../domain/events/event-text.ts'
import type { Present } from './conditions.ts'

/** The first ones; a config has fewer reasons and sources. */
const reasonsMax = 200

/** After these, the latest one may be kept no more. */
const leaving: ReadonlySet<GatewayEvent['kind']> = new Set([
  'dead_letters_requeued',
  'dead_letters_remapped',
  'dead_letters_purged',
] as const)

const inLog = 'The log has the reasons (message_unmappable, payload_dead_lettered).'
const someLeft =
  'Others were requeued, mapped again or purged. `dead-letters list` shows the reasons of those that are kept.'

export class DeadLetterCauses {
  readonly #reasons = new Set<string>()
  #latest: string | null = null
  #someLeft = false
  #kept = 0
  /** Made since the start, before the last loss of the spool. */
  #madeBefore = 0

  note(event: GatewayEvent): void {
    const { kind } = event
    if (leaving.has(kind)) {
      this.#forget()
      this.#someLeft = true
      return
    }
    if (kind !== 'message_unmappable' && kind !== 'payload_dead_lettered') return
    const { reason, detail } = event
    if (kind === 'payload_dead_lettered') {
      this.#add(bounded(reason, 64))
      this.#latest = `Latest: ${quote(reason, 64)} for payload ${event.payloadId}: ${quote(detail)}`
      return
    }
    const { source, topic } = event
    this.#add(source === null ? reason : `${reason} of source ${source}`)
    this.#latest = `Latest: ${reason} on topic ${quote(topic, 100)}${fromText(event)}: ${quote(detail)}`
  }

  #add(reason: string): void {
    if (this.#reasons.size < reasonsMax) this.#reasons.add(reason)
  }

  /** The stages begin to count again: `made` is what they have counted. */
  detached(made: number): void {
    this.#madeBefore += made
  }

  /** `kept`: null where that is not known: the store or the spool is lost. `made`: by these stages. */
  *causes(kept: number | null, made: () => number): Generator<Present> {
    // The first one has its event before it is kept.
    if (kept === 0 && this.#kept > 0) {
      this.#forget()
      this.#someLeft = false
    }
    this.#kept = kept ?? this.#kept
    if (this.#kept === 0) return
    const all = this.#madeBefore + made()
    const present = Math.min(all, this.#kept)
    const waiting = this.#kept - present
    const left = present === all ? '' : ` ${present === 1 ? 'is' : 'are'} kept, of ${all} since the start`
    const what = `${plural(present, 'new dead letter')}${left}.`
    const why = this.#latest ?? (this.#someLeft ? someLeft : inLog)
    const causes = [...this.#reasons]
    if (present > 0) yield { code: 'DEAD_LETTERS', cause: { what, why, present, causes } }
    if (waiting === 0) return
    const verb = waiting === 1 ? 'waits' : 'wait'
    const cause = {
      what: `${plural(waiting, 'dead letter')} from before the start ${verb}.`,
      why: 'They were neither requeued nor purged.',
      present: waiting,
    }
    yield { code: 'DEAD_LETTERS_WAITING', cause }
  }

  #forget(): void {
    this.#reasons.clear()
    this.#latest = null
  }
}
