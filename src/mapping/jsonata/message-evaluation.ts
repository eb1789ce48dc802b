// message-evaluation.ts: maps a message of a source with an expression when the caller waits for the result:
// for cases and the command `map`. The daemon keeps such messages in the spool meanwhile
// (ingest/expressions).

import type { Clock } from '../../std/clock.ts'
import type { Message } from '../../domain/message.ts'
import { messageKeyOf } from '../identity.ts'
import type { Mapper } from '../mapper/mapper.ts'
import { createEvaluator, type Evaluation, type Evaluator } from './jsonata.ts'
import type { MapResult } from '../types.ts'

/** Null when no source has an expression. The caller closes it. */
export function openEvaluator(
  clock: Clock,
  { expressions }: Pick<Mapper, 'expressions'>,
): Pick<Evaluator, 'evaluate' | 'close'> | null {
  return expressions.size === 0 ? null : createEvaluator({ clock }, { expressions })
}

/** Evaluates the expression of the source for a message; null when the message cannot be decoded for it. */
export async function evaluateMessage(
  message: Message,
  source: string,
  mapper: Mapper,
  evaluator: Pick<Evaluator, 'evaluate'>,
): Promise<Evaluation | null> {
  const decoded = mapper.decoded(message, source)
  if (decoded.kind !== 'value') return null
  return evaluator.evaluate(source, decoded.value, { message })
}

/** The result of a deferred message; null when its expression was not evaluated. */
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
