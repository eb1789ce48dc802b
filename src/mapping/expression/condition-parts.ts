// condition-parts.ts: the parts of a condition, each judged alone, to explain why a long condition is false.
//
//   sat > 3 && (fix == 1 || fix == 2) && t != "l"    three parts, all of which must hold
//   a > 0 || b > 0                                   two alternatives, one of which must hold

import { compilePath } from '../path/path.ts'
import type { Place } from '../types.ts'
import { compileTree } from './evaluation.ts'
import { truthOf } from './number-operators.ts'
import { expressionOf } from '../path/path-as-expression.ts'
import { readsOf } from './reads.ts'
import { withinLimit } from './step-budget.ts'
import { operandsOf, parseExpression, type Node } from './syntax.ts'

export type FailedPart = {
  text: string
  /** The values that it compares; absent ones without a value. */
  values: readonly { path: string; value?: unknown }[]
}

export type ConditionParts = {
  /** How the parts are joined. */
  joined: 'and' | 'or'
  parts: number
  /** The parts that do not hold. */
  failed: readonly FailedPart[]
}

export type JudgeParts = (place: Place) => ConditionParts

/** For a condition that compiles. */
export function compileConditionParts(text: string, captureNames: readonly string[]): JudgeParts {
  const tree = parseExpression(text)
  const isChoice = tree.op === '||'
  const parts = operandsOf(tree, isChoice ? '||' : '&&').map((node) => ({
    text: textOf(text, node),
    read: compileTree(node, captureNames, false),
    paths: readsOf(node, captureNames, false).map(({ path }) => ({
      text: expressionOf(path),
      read: compilePath(path),
    })),
  }))
  return (place) => ({
    joined: isChoice ? 'or' : 'and',
    parts: parts.length,
    failed: parts
      .filter(({ read }) => withinLimit(() => truthOf(read(place))) !== true)
      .map(({ text: part, paths }) => ({
        text: part,
        values: paths.map((path) => {
          const value = path.read(place)
          return value === undefined ? { path: path.text } : { path: path.text, value }
        }),
      })),
  })
}

/** The tree has no parentheses, so those around a part are found in the text. */
function textOf(text: string, { start, end }: Node): string {
  const before = /\(\s*$/.exec(text.slice(0, start))
  const behind = /^\s*\)/.exec(text.slice(end))
  const isInside = before !== null && behind !== null
  const part = isInside ? text.slice(before.index, end + behind[0].length) : text.slice(start, end)
  return part.replace(/\s+/g, ' ').trim()
}
