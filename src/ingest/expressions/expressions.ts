// expressions.ts: evaluates the JSONata expressions of the sources for messages that were kept: those that
// wait only for their expression (deferred-messages.ts), and those that leave the quarantine (quarantine.ts).
// All share one thread.
//
// An expression that takes too long, nests too deep or fails costs only its own message, which becomes a dead
// letter; one that does so again and again is switched off for its source (expression-switch.ts). Where the
// thread cannot be started, or another mapping comes into force meanwhile, nothing is evaluated and the
// message stays where it is, for later.

import type { Clock } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import type { Message } from '../../domain/message.ts'
import { createEvaluator, type Evaluator, type Mapper } from '../../mapping/mapping.ts'
import type { Evaluated } from '../remap/remap.ts'
import { createExpressionSwitch } from './expression-switch.ts'

/** Reasons that tell of the time or the memory that an expression took. */
const costly = new Set(['EXPRESSION_TIMEOUT', 'EXPRESSION_LIMIT'])

export type Expressions = {
  /** Never rejects. `later` where `mapper` is not of the mapping in force, or the thread does not run. */
  evaluate(mapper: Mapper, source: string, message: Message): Promise<Evaluated | 'later'>
  /** Those of `mapper` are in force from here on; resolves when the previous thread has ended. */
  swap(mapper: Mapper): Promise<void>
  /** Expressions that took too long. */
  timeouts(): number
  close(): Promise<void>
}

export function createExpressions(
  { clock, emit }: { clock: Clock; emit: Emit },
  first: Pick<Mapper, 'expressions'>,
): Expressions {
  let { expressions } = first
  let evaluator = newEvaluator()
  let earlierTimeouts = 0
  let failed = false
  const switches = createExpressionSwitch({ clock, emit })
  return { evaluate, swap, timeouts, close }

  function newEvaluator(): Evaluator | null {
    return expressions.size === 0 ? null : createEvaluator({ clock }, { expressions })
  }

  async function evaluate(mapper: Mapper, source: string, message: Message): Promise<Evaluated | 'later'> {
    const expression = mapper.expressions.get(source)
    if (evaluator === null || expression === undefined || expressions.get(source) !== expression)
      return 'later'
    if (switches.isOff(source)) return 'later'
    const decoded = mapper.decoded(message, source)
    if (decoded.kind === 'ended') return decoded
    const evaluation = await evaluator.evaluate(source, decoded.value, { message })
    reportFault()
    if (evaluation.kind === 'later') return 'later'
    const isCostly = evaluation.kind === 'refused' && costly.has(evaluation.reason)
    switches.ended(source, isCostly ? 'cost' : 'in time')
    if (evaluation.kind === 'value') return { source, value: evaluation.value }
    const { reason, detail } = evaluation
    return { result: mapper.refused(message, source, reason, detail) }
  }

  function reportFault(): void {
    const why = evaluator?.fault() ?? null
    if (why !== null && !failed) emit({ kind: 'expressions_failed', why })
    if (why === null && failed) emit({ kind: 'expressions_resumed' })
    failed = why !== null
  }

  async function swap(next: Mapper): Promise<void> {
    const old = evaluator
    earlierTimeouts += old?.counters().timeouts ?? 0
    expressions = next.expressions
    switches.reset()
    evaluator = newEvaluator()
    await old?.close()
    reportFault()
  }

  function timeouts(): number {
    return earlierTimeouts + (evaluator?.counters().timeouts ?? 0)
  }

  async function close(): Promise<void> {
    await evaluator?.close()
  }
}
