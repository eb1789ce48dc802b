// calls.ts: calls of functions (functions.ts) and macros. A macro evaluates its body for each element of a
// list, or for each key of an object:
//
//   list.exists(x, x.valid)     whether it is true for any element
//   list.all(x, x.valid)        for all; list.exists_one for exactly one
//   list.filter(x, x.valid)     the elements for which it is true
//   list.map(x, x.lat)          its values; list.map(x, x.valid, x.lat) of those that pass
//   has(x)                      whether x has a value
//
// Elements for which a body has no value: `filter` leaves them out, `map` has null, and the others have no
// result unless another element decides.

import { meantText } from '../../std/nearest-word.ts'
import { isNone, NoResult } from '../path/value.ts'
import type { Read } from '../path/path.ts'
import { isRecord } from '../path/path-eval.ts'
import { Malformed } from '../path/text-cursor.ts'
import { truthOf } from './number-operators.ts'
import { arityOf } from './functions/function-row.ts'
import { compileFunction, functionNamed, functionNames } from './functions/functions.ts'
import { constantOf } from './names.ts'
import type { StepBudget } from './step-budget.ts'
import { nodesOf, type Node } from './syntax.ts'

/**
 * A macro in a macro visits each pair of elements; a third level would need too many steps for real lists.
 */
const macrosMax = 2

/** Nodes of a body that count as one step. */
const nodesPerStep = 3

const noList = new NoResult('a macro needs a list or an object')

/** A variable of a macro: it is set before each evaluation of the macro's body. */
export type Variable = { value: unknown }

export type Scope = {
  readonly captures: readonly string[]
  readonly variables: ReadonlyMap<string, Variable>
  /** Macros around this node. */
  readonly macros: number
  /** The expression is the value of a field: ==, != and `in` of what is not there have no result then. */
  readonly isValue: boolean
  readonly steps: StepBudget
  /** Compiles an argument or a body. */
  compile(node: Node, scope: Scope): Read
}

type Parts = { list: Node; variable: string; bodies: readonly Node[] }

/** Of a call that is a macro over a list; undefined for any other. */
export function macroOf(node: Node): Parts | undefined {
  if (node.op !== 'rcall') return undefined
  const [name, list, [variable, ...bodies]] = node.args
  if (!Object.hasOwn(visitors, name) || variable?.op !== 'id') return undefined
  return bodies.length === 1 || (name === 'map' && bodies.length === 2)
    ? { list, variable: variable.args, bodies }
    : undefined
}

export function compileCall(node: Node, name: string, operands: readonly Node[], scope: Scope): Read {
  const macro = macroOf(node)
  if (macro !== undefined) return compileMacro(name, macro, scope)
  if (name === 'has') return compileHas(operands, scope)
  const row = functionNamed(name)
  if (row === undefined)
    throw new Malformed(
      `has the unknown function ${name}().${meantText(name, [...functionNames, ...Object.keys(visitors), 'has'])}`,
    )
  const { least, most } = arityOf(row)
  if (operands.length < least || operands.length > most)
    throw new Malformed(`has ${name}() with ${operands.length} arguments; it is ${name}(${row.parameters})`)
  const reads = operands.map((operand) => scope.compile(operand, scope))
  const apply = row.prepare?.(operands.map(constantOf)) ?? row.apply
  return compileFunction({ ...row, apply }, reads, scope.steps)
}

function compileHas([operand, ...more]: readonly Node[], scope: Scope): Read {
  if (operand === undefined || more.length > 0)
    throw new Malformed('has has() without one argument, such as has(gps.lat)')
  const read = scope.compile(operand, scope)
  return (place) => !isNone(read(place))
}

function compileMacro(name: string, { list, variable: called, bodies }: Parts, scope: Scope): Read {
  if (scope.macros >= macrosMax)
    throw new Malformed(`has ${name}() inside of two others; one may stand in another`)
  const find = scope.compile(list, scope)
  const variable: Variable = { value: undefined }
  const inner = {
    ...scope,
    variables: new Map([...scope.variables, [called, variable]]),
    macros: scope.macros + 1,
  }
  const [first, second] = bodies.map((body) => inner.compile(body, inner))
  const size = bodies.reduce((sum, body) => sum + [...nodesOf(body)].length, 0)
  const cost = Math.ceil(size / nodesPerStep)
  const body = second === undefined ? first! : where(first!, second)
  const visit = visitors[name]!
  const { steps } = scope
  return (place) => {
    const found = find(place)
    if (isNone(found)) return found
    const elements = Array.isArray(found) ? (found as unknown[]) : isRecord(found) ? Object.keys(found) : null
    if (elements === null) return noList
    const seen: Seen = { result: undefined, count: 0, list: [] }
    for (const element of elements) {
      steps.spend(cost)
      variable.value = element
      if (visit.isEnough(seen, body(place), element)) break
    }
    return visit.result(seen)
  }
}

const leftOut = Symbol('left out')

/** Of `map` with a condition. */
function where(condition: Read, transform: Read): Read {
  return (place) => (truthOf(condition(place)) === true ? transform(place) : leftOut)
}

/** What a macro knows of the elements until now. */
type Seen = { result: unknown; count: number; readonly list: unknown[] }

type Visitor = {
  /** Takes what the body gives for an element; true where the other elements change nothing. */
  isEnough(seen: Seen, found: unknown, element: unknown): boolean
  result(seen: Seen): unknown
}

const visitors: Readonly<Record<string, Visitor>> = {
  exists: quantifier(true),
  all: quantifier(false),
  exists_one: {
    isEnough(seen, found) {
      const truth = truthOf(found)
      if (truth === true) seen.count += 1
      else if (truth !== false) seen.list.push(truth)
      return false
    },
    result: ({ count, list }) => (list.length > 0 ? list[0] : count === 1),
  },
  filter: {
    isEnough({ list }, found, element) {
      if (truthOf(found) === true) list.push(element)
      return false
    },
    result: ({ list }) => list,
  },
  map: {
    isEnough({ list }, found) {
      if (found !== leftOut) list.push(isNone(found) ? null : found)
      return false
    },
    result: ({ list }) => list,
  },
}

/** `decisive`: the truth of one element that decides. */
function quantifier(decisive: boolean): Visitor {
  return {
    isEnough(seen, found) {
      const truth = truthOf(found)
      if (truth === !decisive) return false
      seen.result = truth
      // An element without a result.
      if (truth !== decisive) seen.count += 1
      return truth === decisive
    },
    result: ({ result, count }) => (count > 0 || result === decisive ? result : !decisive),
  }
}
