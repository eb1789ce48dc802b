// reads.ts: which values of a message an expression reads, found in its tree. What a macro reads of the
// elements of a list is known as well: `data.exists(x, x.id == 5)` reads `id` of each element of `data`.

import type { Path } from '../path/path.ts'
import type { Step } from '../path/path-eval.ts'
import { macroOf } from './calls.ts'
import { compilePredicate } from './evaluation.ts'
import { chainOf, constantOf, placeOf } from './names.ts'
import { childrenOf, type Node } from './syntax.ts'

/**
 * Steps to elements of a list, all or those for which `holds` is true, and to the value of each key of an
 * object.
 */
type EachElement = { kind: 'each'; holds?: ((element: unknown) => boolean) | undefined }

const eachElement: EachElement = { kind: 'each' }
const eachValue = { kind: 'each value' } as const

export type ReadStep = Step | EachElement | typeof eachValue

export type ExpressionRead = {
  /** Up to the first list of which elements are read. */
  path: Path
  /** From that list on; empty where there is none. */
  below: readonly ReadStep[]
  /** Also what is inside of the value, if it is an object or a list. */
  isWhole: boolean
}

type Place = Omit<ExpressionRead, 'isWhole'> & {
  /** A selection of the elements of the list, so that the number of an element says nothing. */
  selection?: EachElement
  /** `{ key, value }` of an object at the place: a list of them, or one. */
  entries?: 'list' | 'one'
}

type Variables = ReadonlyMap<string, readonly Place[]>

/** Functions whose result holds what is inside of their argument. */
const wholes: ReadonlySet<string> = new Set(['zip', 'join', 'min', 'max'])

/** `isWhole`: the result is sent or searched further; false for a condition. */
export function readsOf(tree: Node, captures: readonly string[] | null, isWhole: boolean): ExpressionRead[] {
  const reads: ExpressionRead[] = []
  consume(tree, new Map(), isWhole)
  return reads

  function consume(node: Node, variables: Variables, whole: boolean): void {
    for (const { path, below } of placesOf(node, variables, whole))
      reads.push({ path, below, isWhole: whole })
  }

  /** Where the values of a node stand in the message. What is read on the way is noted. */
  function placesOf(node: Node, variables: Variables, whole: boolean): readonly Place[] {
    const chain = chainOf(node)
    if (chain !== undefined && !variables.has(chain.root)) return ofChain(chain)
    const macro = macroOf(node)
    if (macro !== undefined) return ofMacro(node, macro, variables, whole)
    if (node.op === 'id') return variables.get(node.args) ?? []
    if (node.op === '.') {
      const [of, key] = node.args
      return placesOf(of, variables, whole).flatMap((place) => belowKey(place, key))
    }
    if (node.op === '[]') return ofIndex(node.args, variables, whole)
    if (node.op === '?:') {
      const [condition, one, other] = node.args
      consume(condition, variables, false)
      return [...placesOf(one, variables, whole), ...placesOf(other, variables, whole)]
    }
    const object = argumentOfEntries(node)
    if (object !== undefined)
      return placesOf(object, variables, whole).map((place) => ({ ...place, entries: 'list' as const }))
    const isMade = node.op === 'list' || node.op === 'map'
    const isWholeCall = (node.op === 'call' || node.op === 'rcall') && wholes.has(node.args[0])
    for (const child of childrenOf(node)) consume(child, variables, isMade ? whole : isWholeCall)
    return []
  }

  function ofChain(chain: NonNullable<ReturnType<typeof chainOf>>): readonly Place[] {
    if (chain.root === 'topic' && captures === null) return []
    const place = placeOf(chain, captures ?? [])
    return 'capture' in place ? [] : [{ path: place, below: [] }]
  }

  function ofIndex(
    [of, index]: readonly [Node, Node],
    variables: Variables,
    whole: boolean,
  ): readonly Place[] {
    const constant = constantOf(index)
    const step: ReadStep =
      typeof constant === 'string'
        ? { kind: 'key', key: constant }
        : Number.isSafeInteger(constant)
          ? { kind: 'element', index: Number(constant) }
          : eachElement
    if (constant === undefined) consume(index, variables, false)
    return placesOf(of, variables, whole).map((place) =>
      deeper(place, step.kind === 'element' ? (place.selection ?? step) : step),
    )
  }

  function ofMacro(
    node: Node,
    { list, variable, bodies }: NonNullable<ReturnType<typeof macroOf>>,
    variables: Variables,
    whole: boolean,
  ): readonly Place[] {
    const name = node.op === 'rcall' ? node.args[0] : ''
    const places = placesOf(list, variables, whole)
    const inner = new Map([...variables, [variable, places.map((place) => deeper(place, eachElement))]])
    for (const [index, body] of bodies.entries())
      consume(body, inner, whole && name === 'map' && index === bodies.length - 1)
    if (name !== 'filter') return []
    const selection: EachElement = { kind: 'each', holds: compilePredicate(variable, bodies[0]!) }
    return places.map((place) => ({ ...place, selection }))
  }
}

/** Of `entries(x)` and `x.entries()`. */
function argumentOfEntries(node: Node): Node | undefined {
  if (node.op === 'call' && node.args[0] === 'entries') return node.args[1][0]
  return node.op === 'rcall' && node.args[0] === 'entries' ? node.args[1] : undefined
}

function belowKey(place: Place, key: string): readonly Place[] {
  if (place.entries !== 'one') return [deeper(place, { kind: 'key', key })]
  const { path, below } = place
  return key === 'value' ? [deeper({ path, below }, eachValue)] : []
}

function deeper({ path, below, entries }: Place, step: ReadStep): Place {
  if (entries === 'list') return { path, below, entries: 'one' }
  if (below.length > 0 || step.kind === 'each' || step.kind === 'each value')
    return { path, below: [...below, step] }
  return { path: { ...path, steps: [...path.steps, step] }, below }
}
