// path-as-expression.ts: writes a path as an expression, for messages about options that expressions replace.

import { assertNever } from '../../std/assert.ts'
import type { Path, Step } from './path-eval.ts'
import { isDecimal } from './value.ts'

/** The words that stand for something else than a key of the record (../expression/names.ts). */
export const rootNames: ReadonlySet<string> = new Set([
  'record',
  'message',
  'outer',
  'topic',
  'previous',
  'packet',
])

/** Words that the language keeps for itself. */
const reserved: ReadonlySet<string> = new Set(
  'as break const continue else false for function if import in let loop package namespace null prototype return true var void while'.split(
    ' ',
  ),
)

export function expressionOf({ from, levels, steps }: Path): string {
  const [first, second, ...others] = steps
  if (first?.kind === 'key' && second?.kind === 'key') {
    if (first.key === '$properties') return celOfSteps(keyedText('packet.user', second.key), others)
    if (first.key === '$packet') return celOfSteps(keyedText('packet', second.key), others)
  }
  switch (from) {
    case 'root':
      return celOfSteps('message', steps)
    case 'up':
      return celOfSteps(Array(levels).fill('outer').join('.'), steps)
    case 'previous':
      return first?.kind === 'key' && first.key === '$time' ? 'previous.time' : celOfSteps('previous', steps)
    case 'record':
    default:
      if (first?.kind === 'key' && isName(first.key) && !rootNames.has(first.key))
        return celOfSteps(first.key, steps.slice(1))
      return celOfSteps('record', steps)
  }
}

function isName(key: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(key) && !reserved.has(key)
}

/** `of.key`, or `of["a key"]`. */
export function keyedText(of: string, key: string): string {
  return isName(key) ? `${of}.${key}` : `${of}[${JSON.stringify(key)}]`
}

function celOfSteps(start: string, steps: readonly Step[]): string {
  let text = start
  for (const step of steps) text = celOfStep(text, step)
  return text
}

function celOfStep(of: string, step: Step): string {
  switch (step.kind) {
    case 'key':
      return keyedText(of, step.key)
    case 'element':
      return `${of}[${step.index}]`
    case 'select':
      return `${of}.filter(x, ${keyedText('x', step.key)} == ${isDecimal(step.value) ? step.value : JSON.stringify(step.value)})[0]`
    case 'split':
      return `${of}.split(${JSON.stringify(step.separator)})`
    case 'first':
      return `entries(${of})[0].value`
    case 'entries':
      return `entries(${of})`
    default:
      return assertNever(step)
  }
}
