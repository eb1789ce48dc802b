// expressions.ts: what the JSONata expressions of the sources make of messages that were kept: of those that wait for
// nothing else (deferred-messages.ts), and of those that leave the quarantine (quarantine.ts). All share one thread.
//
// An expression that takes too long, goes too deep or fails costs its own message. Where the thread cannot be started,
// or another mapping comes into force meanwhile, nothing is evaluated: the message stays where it is, for later.

import type { Clock } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import type { Message } from '../../domain/message.ts'
import { createEvaluator, type Evaluator, type Mapper, type MapResult } from '../../mapping/mapping.ts'
import type { RemapEntry } from '../remap/remap.ts'
import { messageFrom } from '../remap/kept-message.ts'
import { mapperFailed } from '../remap/mapper-failure.ts'

export type Expressions = {
  /** Never rejects. `mapper` is of the mapping in force; else the answer is `later`. */
  evaluate(mapper: Mapper, source: string, message: Message): Promise<Evaluated | 'later'>
  /** Those of `mapper` are in force from here on; resolves when the thread of before has ended. */
  swap(mapper: Mapper): Promise<void>
  /** Expressions that took too long. */
  timeouts(): number
  close(): Promise<void>
}

/** What is left to do in the turn of the message: mapping the next one forgets the one before. */
export type Evaluated = { source: string; value: unknown } | { result: MapResult }

export function createExpressions(
  { clock, emit }: { clock: Clock; emit: Emit },
  first: Pick<Mapper, 'expressions'>,
): Expressions {
  let { expressions } = first
  let evaluator = newEvaluator()
  let timeoutsBefore = 0
  let failed = false
  return { evaluate, swap, timeouts, close }

  function newEvaluator(): Evaluator | null {
    return expressions.size === 0 ? null : createEvaluator({ clock }, { expressions })
  }

  async function evaluate(mapper: Mapper, source: string, message: Message): Promise<Evaluated | 'later'> {
    const expression = mapper.expressions.get(source)
    if (evaluator === null || expression === undefined || expressions.get(source) !== expression)
      return 'later'
    const decoded = mapper.decoded(message, source)
    if (decoded.kind === 'ended') return decoded
    const evaluation = await evaluator.evaluate(source, decoded.value)
    tellFault()
    if (evaluation.kind === 'later') return 'later'
    if (evaluation.kind === 'value') return { source, value: evaluation.value }
    const { reason, detail } = evaluation
    return { result: { kind: 'unmappable', source, device: null, reason, detail, windowKey: '' } }
  }

  function tellFault(): void {
    const why = evaluator?.fault() ?? null
    if (why !== null && !failed) emit({ kind: 'expressions_failed', why })
    if (why === null && failed) emit({ kind: 'expressions_resumed' })
    failed = why !== null
  }

  async function swap(next: Mapper): Promise<void> {
    const old = evaluator
    timeoutsBefore += old?.counters().timeouts ?? 0
    expressions = next.expressions
    evaluator = newEvaluator()
    await old?.close()
    tellFault()
  }

  function timeouts(): number {
    return timeoutsBefore + (evaluator?.counters().timeouts ?? 0)
  }

  async function close(): Promise<void> {
    await evaluator?.close()
  }
}

/** What the expressions give for the entries that need one, by id; null where one of them cannot be evaluated for now. */
export async function evaluated(
  expressions: Pick<Expressions, 'evaluate'>,
  mapper: Mapper,
  entries: readonly RemapEntry[],
): Promise<ReadonlyMap<string, Evaluated> | null> {
  const values = new Map<string, Evaluated>()
  if (mapper.expressions.size === 0) return values
  const answers = await Promise.all(
    entries.map(async ({ id, envelope }) => {
      const message = messageFrom(envelope)
      const result = mapKept(mapper, message, undefined)
      if (result.kind !== 'deferred') return null
      return { id, answer: await expressions.evaluate(mapper, result.source, message) }
    }),
  )
  for (const one of answers) {
    if (one?.answer === 'later') return null
    if (one !== null) values.set(one.id, one.answer)
  }
  return values
}

/** Maps a message that was kept; where it needs an expression, with what that gave. Never throws. */
export function mapKept(mapper: Mapper, message: Message, evaluated: Evaluated | undefined): MapResult {
  try {
    if (evaluated === undefined) return mapper.map(message, false)
    if ('result' in evaluated) return evaluated.result
    return mapper.mapDecoded(message, evaluated.source, evaluated.value)
  } catch (error) {
    return mapperFailed(message, error)
  }
}
