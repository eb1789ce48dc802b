// engine-losses.ts: messages that the server of a source removed before a gateway took them: by a purge, a
// limit, an age, or with a queue that was deleted. One ledger for each source: a counter, an event for each
// find, and a condition for a day. How much it was is a lower bound: what came meanwhile hides as much.

import type { Clock } from '../../std/clock.ts'
import { plural } from '../../std/quantity.ts'
import { listText } from '../../std/quote.ts'
import type { Emit } from '../../domain/event.ts'
import type { SourceRisks } from './source-risks.ts'

/** `removed`: the queue is there. */
export type LossCause = 'removed' | 'deleted'

type Deps = { clock: Pick<Clock, 'after'>; emit: Emit; risks: SourceRisks }

export class EngineLosses {
  readonly #deps: Deps
  readonly #options: { name: string; member: string }
  readonly #byQueue = new Map<string, number>()

  constructor(deps: Deps, options: { name: string; member: string }) {
    this.#deps = deps
    this.#options = options
  }

  note(queue: string, messages: number, cause: LossCause): void {
    if (messages <= 0) return
    const { emit, risks } = this.#deps
    const { name: messageSource, member: clientId } = this.#options
    this.#byQueue.set(queue, (this.#byQueue.get(queue) ?? 0) + messages)
    emit({ kind: 'engine_messages_lost', messageSource, queue, messages, cause })
    const texts = [...this.#byQueue].map(([of, count]) => `${plural(count, 'message')} of ${of}`)
    const detail =
      `The engine has lost at least ${listText(texts, { lengthMax: 160 })} that no gateway had taken; last ` +
      (cause === 'deleted' ? `with ${queue}, which was deleted` : 'by a purge, a limit or an age')
    for (const about of this.#byQueue.keys())
      risks.happened('engine_lost_messages', about, { clientId, detail })
  }

  /** Since the start. */
  total(): number {
    return [...this.#byQueue.values()].reduce((sum, count) => sum + count, 0)
  }
}
