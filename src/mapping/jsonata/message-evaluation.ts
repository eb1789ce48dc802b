// message-evaluation.ts: a message of a source with an expression, from what the expression gave to what it becomes. For whoever
// waits for the answer himself: cases and `map`; the daemon does the same over its shelves.

import type { Clock } from '../../std/clock.ts'
import type { Message } from '../../domain/message.ts'
import { messageKeyOf } from '../identity.ts'
import type { Mapper } from '../mapper/mapper.ts'
import { createEvaluator, type Evaluation, type Evaluator } from './jsonata.ts'
import type { MapResult } from '../types.ts'

/** Null where no source has an expression. To be closed. */
export function openEvaluator(
  clock: Clock,
  { expressions }: Pick<Mapper, 'expressions'>,
): Pick<Evaluator, 'evaluate' | 'close'> | null {
  return expressions.size === 0 ? null : createEvaluator({ clock }, { expressions })
}

/** What the expression of the source gives for a message; null where there is nothing to evaluate it over. */
export async function evaluateMessage(
  message: Message,
  source: string,
  mapper: Mapper,
  evaluator: Pick<Evaluator, 'evaluate'>,
): Promise<Evaluation | null> {
  const decoded = mapper.decoded(message, source)
  return decoded.kind === 'value' ? evaluator.evaluate(source, decoded.value) : null
}

/** What a message becomes that was deferred; null where nothing was evaluated. */
export function mapEvaluation(
  mapper: Mapper,
  message: Message,
  source: string,
  answer: Evaluation | null,
): MapResult | null {
  switch (answer?.kind) {
    case 'value':
      return mapper.mapDecoded(message, source, answer.value)
    case 'refused': {
      const { reason, detail } = answer
      const windowKey = messageKeyOf(message)
      return { kind: 'unmappable', source, device: null, reason, detail, windowKey }
    }
    case 'later':
      return null
    case undefined:
    default: {
      const decoded = mapper.decoded(message, source)
      return decoded.kind === 'ended' ? decoded.result : null
    }
  }
}
