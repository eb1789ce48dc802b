// evaluation.ts: the tree of an expression as closures, made once when the config is compiled.
//
// A part without a value makes the whole none; `a ? b : c` reads one of its sides only, `&&` and `||` are
// decided by one side where it decides, and `has(x)` always has a result. So have `==`, `!=` and `in` in a
// condition; in the value of a field they have none without their values (`isValue` of Scope), so that
// `unit == "mi" ? s * 1.609344 : s` sends no speed of which the unit is not known.

import { assertNever } from '../../std/assert.ts'
import { isNone, NoResult } from '../path/value.ts'
import { compilePath, type Read } from '../path/path.ts'
import { isRecord, setOwn } from '../path/path-eval.ts'
import { Malformed } from '../path/text-cursor.ts'
import { arithmetic, numberOf, isSame, order, truthOf, unordered } from './number-operators.ts'
import { compileCall, type Scope, type Variable } from './calls.ts'
import { chainOf, constantOf, placeOf } from './names.ts'
import { StepBudget, stepsOfText, withinLimit } from './step-budget.ts'
import { isOperator, nodesOf, type Node, type Operator } from './syntax.ts'

const noContainer = new NoResult('`in` needs a list or an object on its right')

/** `captures`: names of those of the topic. `isValue`: as in `Scope`. Throws Malformed. */
export function compileTree(tree: Node, captures: readonly string[], isValue: boolean): Read {
  const steps = new StepBudget()
  const scope = { captures, variables: new Map(), macros: 0, isValue, steps, compile: compileNode }
  const read = compileNode(tree, scope)
  if (![...nodesOf(tree)].some(needsSteps)) return read
  return (place) => {
    steps.begin()
    return read(place)
  }
}

/** Sums of texts, lists and calls. All else takes a bounded time. */
function needsSteps({ op }: Node): boolean {
  return op === 'call' || op === 'rcall' || op === '+' || op === 'in' || op === 'list' || op === 'map'
}

/** Whether a body of a macro holds for an element; undefined where it reads more than the element. */
export function compilePredicate(called: string, body: Node): ((element: unknown) => boolean) | undefined {
  if ([...nodesOf(body)].some((node) => node.op === 'id' && node.args !== called)) return undefined
  const variable: Variable = { value: undefined }
  const steps = new StepBudget()
  const read = compileNode(body, {
    captures: [],
    variables: new Map([[called, variable]]),
    macros: 1,
    isValue: false,
    steps,
    compile: compileNode,
  })
  return (element) => {
    steps.begin()
    variable.value = element
    return withinLimit(() => truthOf(read(nowhere))) === true
  }
}

const nowhere = { record: undefined, root: undefined, up: undefined, captures: [] }

function compileNode(node: Node, scope: Scope): Read {
  const chain = chainOf(node)
  if (chain !== undefined && !scope.variables.has(chain.root)) {
    const place = placeOf(chain, scope.captures)
    if (!('capture' in place)) return compilePath(place)
    const { capture } = place
    return ({ captures }) => captures[capture]
  }
  if (isOperator(node)) return compileOperator(node, scope)
  switch (node.op) {
    case 'value':
      return compileConstant(node)
    case 'id': {
      const variable = scope.variables.get(node.args)!
      return () => variable.value
    }
    case '.':
      return compileIndex(compileNode(node.args[0], scope), () => node.args[1])
    case '[]':
      return compileIndex(compileNode(node.args[0], scope), compileNode(node.args[1], scope))
    case '!_':
      return negation(compileNode(node.args, scope))
    case '-_':
      return compileMinus(node.args, scope)
    case '&&':
      return junction(false, compileNode(node.args[0], scope), compileNode(node.args[1], scope))
    case '||':
      return junction(true, compileNode(node.args[0], scope), compileNode(node.args[1], scope))
    case '?:':
      return choice(node.args, scope)
    case 'list':
      return compileList(node.args, scope)
    case 'map':
      return compileObject(node.args, scope)
    case 'call':
      return compileCall(node, node.args[0], node.args[1], scope)
    case 'rcall':
      return compileCall(node, node.args[0], [node.args[1], ...node.args[2]], scope)
    case '.?':
    case '[?]':
      throw new Malformed(`has ${node.op}, which is no operator here; has(x) tells whether there is a value`)
    default:
      return assertNever(node)
  }
}

function compileConstant(node: Node): Read {
  const value = constantOf(node)
  if (value === undefined)
    throw new Malformed('has bytes or a number without a sign (5u); write a text or a plain number')
  if (typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER)
    throw new Malformed('has a number beyond 2^53; compare it as a text, such as id == "1234567890123456789"')
  return () => value
}

function compileMinus(operand: Node, scope: Scope): Read {
  const constant = constantOf(operand)
  if (typeof constant === 'number') return () => -constant
  const read = compileNode(operand, scope)
  return (place) => {
    const value = numberOf(read(place))
    // Not -0, which no decimal is written as.
    return typeof value === 'number' ? 0 - value : value
  }
}

function compileIndex(of: Read, index: Read): Read {
  return (place) => valueAt(of(place), index(place))
}

function valueAt(of: unknown, at: unknown): unknown {
  if (isNone(of) || isNone(at)) return isNone(of) ? of : at
  if (Array.isArray(of))
    return typeof at === 'number' ? (of[at < 0 ? of.length + at : at] as unknown) : undefined
  if (!isRecord(of)) return undefined
  const key = typeof at === 'number' ? String(at) : at
  return typeof key === 'string' && Object.hasOwn(of, key) ? of[key] : undefined
}

function negation(operand: Read): Read {
  return (place) => {
    const value = truthOf(operand(place))
    return typeof value === 'boolean' ? !value : value
  }
}

/** `&&` is decided by one side that is false, `||` by one that is true. */
function junction(decisive: boolean, left: Read, right: Read): Read {
  return (place) => {
    const first = truthOf(left(place))
    if (first === decisive) return decisive
    const second = truthOf(right(place))
    return second === decisive || first === !decisive ? second : first
  }
}

function choice([condition, then, otherwise]: readonly [Node, Node, Node], scope: Scope): Read {
  const decide = compileNode(condition, scope)
  const one = compileNode(then, scope)
  const other = compileNode(otherwise, scope)
  return (place) => {
    const found = truthOf(decide(place))
    if (found === true) return one(place)
    return found === false ? other(place) : found
  }
}

/** An element without a value is null. */
function compileList(nodes: readonly Node[], scope: Scope): Read {
  const constants = nodes.map(constantOf)
  if (constants.every((constant) => constant !== undefined)) return () => constants
  const reads = nodes.map((node) => compileNode(node, scope))
  return (place) => {
    scope.steps.spend(reads.length)
    return reads.map((read) => {
      const value = read(place)
      return isNone(value) ? null : value
    })
  }
}

/** A key without a value is left out. */
function compileObject(entries: readonly (readonly [Node, Node])[], scope: Scope): Read {
  const fields = entries.map(([key, value]) => {
    const name = constantOf(key)
    if (typeof name !== 'string') throw new Malformed('has an object with a key that is no constant text')
    return { name, read: compileNode(value, scope) }
  })
  return (place) => {
    scope.steps.spend(fields.length)
    const made: Record<string, unknown> = {}
    for (const { name, read } of fields) {
      const value = read(place)
      if (!isNone(value)) setOwn(made, name, value)
    }
    return made
  }
}

function compileOperator(node: Operator, scope: Scope): Read {
  const [leftNode, rightNode] = node.args
  if (isComparison(node.op)) refuseUseless(leftNode, rightNode)
  const left = compileNode(leftNode, scope)
  const right = compileNode(rightNode, scope)
  const fixed = constantOf(rightNode)
  if (node.op === 'in' && fixed !== undefined)
    throw new Malformed('has `in` without a list, such as in ["vp", "due"]')
  const combine = boundedOperation(node.op, scope.steps)
  if (scope.isValue && isEquality(node.op) && ![leftNode, rightNode].some(isNullLiteral))
    return ofKnown(combine, left, right)
  // The most frequent ones without another call.
  if (node.op === '==' && fixed !== undefined) return (place) => isSame(left(place), fixed)
  if (node.op === '!=' && fixed !== undefined) return (place) => !isSame(left(place), fixed)
  return (place) => combine(left(place), right(place))
}

const isEquality = (op: string) => ['==', '!=', 'in'].includes(op)
const isNullLiteral = (node: Node) => constantOf(node) === null

/** Without both values there is none: `false` would be sent although nothing is known. */
function ofKnown(combine: Combine, left: Read, right: Read): Read {
  return (place) => {
    const one = left(place)
    if (isNone(one)) return one
    const other = right(place)
    return isNone(other) ? other : combine(one, other)
  }
}

function isComparison(op: string): boolean {
  return ['==', '!=', '<', '<=', '>', '>='].includes(op)
}

/** `"69" != 2` and `["69"] != 2` are the same for every message: a key was meant. */
function refuseUseless(left: Node, right: Node): void {
  const isFixed = (node: Node) => constantOf(node) !== undefined || node.op === 'list' || node.op === 'map'
  if (isFixed(left) && (isFixed(right) || left.op === 'list'))
    throw new Malformed('compares constants; a key that is no name is written record["69"]')
}

/** What takes time with the length of a list or a text. */
function boundedOperation(op: Operator['op'], steps: StepBudget): Combine {
  const combine = operations[op]
  if (op === 'in')
    return (value, container) => {
      if (Array.isArray(container)) steps.spend(container.length)
      return combine(value, container)
    }
  if (op !== '+') return combine
  return (left, right) => {
    if (typeof left === 'string' && typeof right === 'string')
      steps.spend(stepsOfText(left.length + right.length))
    return combine(left, right)
  }
}

type Combine = (left: unknown, right: unknown) => unknown

const operations: Readonly<Record<Operator['op'], Combine>> = {
  '==': isSame,
  '!=': (left, right) => !isSame(left, right),
  '<': ordered((found) => found < 0),
  '<=': ordered((found) => found <= 0),
  '>': ordered((found) => found > 0),
  '>=': ordered((found) => found >= 0),
  in: isIn,
  ...arithmetic,
}

function ordered(holds: (order: number) => boolean): Combine {
  return (left, right) => {
    if (isNone(left)) return left
    if (isNone(right)) return right
    const found = order(left, right)
    return Number.isNaN(found) ? unordered : holds(found)
  }
}

function isIn(value: unknown, container: unknown): unknown {
  if (Array.isArray(container)) return (container as unknown[]).some((one) => isSame(value, one))
  if (isNone(container)) return false
  return isRecord(container) ? typeof value === 'string' && Object.hasOwn(container, value) : noContainer
}
