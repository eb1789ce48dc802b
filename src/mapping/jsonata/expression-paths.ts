// expression-paths.ts: what of a message a JSONata expression reads, from its parsed form. It helps a person
// who looks for a missing value, so in doubt a key counts as read: one that is named behind a value of an
// unknown place (`**.lat`, a parameter of a function that is not followed) is read wherever it is.
//
//   records.{"lat": pos.lat, "s": $number(spd)}   records.pos.lat, records.spd
//   $map(list, function($r) { $r.a })             list.a
//   $merge([$, {"x": 1}])                         everything
//
// A value is read when it is used: as a result, an argument, an operand or in a condition. A step on the way
// to another one is not.

import { createRequire } from 'node:module'

/** `*` stands for any key. Lists on the way do not count. */
export type ReadPlace = { from: 'root' | 'anywhere'; keys: readonly string[] }

type Node = Readonly<{
  type?: string
  value?: unknown
  steps?: readonly Node[]
  stages?: readonly { expr?: Node }[]
  predicate?: readonly { expr?: Node }[]
  group?: { lhs: readonly (readonly Node[])[] }
  focus?: string
  expressions?: readonly Node[]
  expression?: Node
  lhs?: unknown
  rhs?: Node
  terms?: readonly { expression: Node }[]
  condition?: Node
  then?: Node
  else?: Node
  procedure?: Node
  arguments?: readonly Node[]
  body?: Node
  pattern?: Node
  update?: Node
  delete?: Node
}>

type Bound = { places: readonly ReadPlace[]; lambda?: Node }
type Names = ReadonlyMap<string, Bound>

const unknown: readonly ReadPlace[] = [{ from: 'anywhere', keys: [] }]

/** `at`: the parameter that gets an element. `givesElement`: so does the result of the call. */
const elementParameters: Readonly<Record<string, { at: number; givesElement: boolean }>> = {
  map: { at: 0, givesElement: false },
  filter: { at: 0, givesElement: true },
  single: { at: 0, givesElement: true },
  reduce: { at: 1, givesElement: false },
}

const passing: ReadonlySet<unknown> = new Set(['append', 'reverse', 'shuffle', 'distinct', 'sort'])

/** For an expression that can be parsed. */
export function placesReadBy(expression: string): readonly ReadPlace[] {
  const jsonata = createRequire(import.meta.url)('jsonata') as typeof import('jsonata')
  const read = new Map<string, ReadPlace>()
  const active = new Set<Node>()
  use(jsonata(expression).ast() as Node, [{ from: 'root', keys: [] }], new Map())
  return [...read.values()]

  function use(node: Node | undefined, at: readonly ReadPlace[], names: Names): void {
    if (node) note(placesOf(node, at, names))
  }

  function note(places: readonly ReadPlace[]): void {
    for (const place of places) read.set(JSON.stringify(place), place)
  }

  /** Where the value of `node` is in the message; empty for a value that the expression makes. */
  function placesOf(node: Node, at: readonly ReadPlace[], names: Names): readonly ReadPlace[] {
    switch (node.type ?? '') {
      case 'path':
        return ofPath(node, at, names)
      case 'name':
      case 'wildcard':
        return below(at, String(node.value))
      case 'descendant':
      case 'parent':
        return unknown
      case 'variable':
        return ofVariable(node, at, names)
      case 'block':
        return ofBlock(node, at, names)
      case 'bind':
        return placesOf(node.rhs ?? {}, at, names)
      case 'condition':
        use(node.condition, at, names)
        return [node.then, node.else].flatMap((branch) => (branch ? placesOf(branch, at, names) : []))
      case 'unary':
        return ofUnary(node, at, names)
      case 'apply':
        return ofApply(node, at, names)
      case 'function':
      case 'partial':
        return ofCall(node, [], { at, names })
      case 'lambda':
        return ofLambda(node, [], { at, names })
      default:
        for (const part of [node.lhs as Node | undefined, node.rhs, node.pattern, node.update, node.delete])
          use(part, at, names)
        return []
    }
  }

  function ofPath({ steps = [], group }: Node, at: readonly ReadPlace[], outer: Names): readonly ReadPlace[] {
    const names = new Map(outer)
    let places = at
    for (const step of steps) {
      const before = places
      if (step.type === 'sort') for (const { expression: term } of step.terms ?? []) use(term, places, names)
      // `name.$uppercase()` takes its argument from the path.
      else if (step.type === 'function' && !refersToContext(step.arguments)) note(places)
      else places = placesOf(step, places, names)
      for (const { expr } of [...(step.stages ?? []), ...(step.predicate ?? [])]) use(expr, places, names)
      if (step.group) usePairs(step.group.lhs, places, names)
      if (step.focus === undefined) continue
      names.set(step.focus, { places })
      places = before
    }
    if (!group) return places
    usePairs(group.lhs, places, names)
    return []
  }

  function ofVariable({ value }: Node, at: readonly ReadPlace[], names: Names): readonly ReadPlace[] {
    if (value === '') return at
    if (value === '$') return [{ from: 'root', keys: [] }]
    return names.get(String(value))?.places ?? []
  }

  function ofBlock({ expressions = [] }: Node, at: readonly ReadPlace[], outer: Names): readonly ReadPlace[] {
    const names = new Map(outer)
    let last: readonly ReadPlace[] = []
    for (const one of expressions) {
      const bound = one.type === 'bind' ? one : null
      const lambda = bound?.rhs?.type === 'lambda' ? bound.rhs : undefined
      last = lambda ? [] : placesOf(one, at, names)
      const name = (bound?.lhs as Node | undefined)?.value
      if (bound) names.set(String(name), { places: last, ...(lambda && { lambda }) })
    }
    return last
  }

  function ofUnary(node: Node, at: readonly ReadPlace[], names: Names): readonly ReadPlace[] {
    if (node.value === '[') return (node.expressions ?? []).flatMap((one) => placesOf(one, at, names))
    if (node.value === '{') usePairs(node.lhs as readonly (readonly Node[])[], at, names)
    else use(node.expression, at, names)
    return []
  }

  function usePairs(pairs: readonly (readonly Node[])[], at: readonly ReadPlace[], names: Names): void {
    for (const one of pairs.flat()) use(one, at, names)
  }

  function ofApply(node: Node, at: readonly ReadPlace[], names: Names): readonly ReadPlace[] {
    const first = placesOf(node.lhs as Node, at, names)
    if (node.rhs?.type === 'function') return ofCall(node.rhs, [first], { at, names })
    note(first)
    use(node.rhs, at, names)
    return []
  }

  type Scope = { at: readonly ReadPlace[]; names: Names }

  function ofCall(node: Node, given: readonly (readonly ReadPlace[])[], scope: Scope): readonly ReadPlace[] {
    const { at, names } = scope
    const args = node.arguments ?? []
    const name = node.procedure?.type === 'variable' ? String(node.procedure.value) : ''
    const own = names.get(name)?.lambda ?? (node.procedure?.type === 'lambda' ? node.procedure : undefined)
    const placesOfArgs = () => [...given, ...args.map((one) => placesOf(one, at, names))]
    if (own) return ofLambda(own, placesOfArgs(), scope)
    const element = elementParameters[name]
    const work = args.at(1 - given.length)
    if (element && work?.type === 'lambda') {
      const [list = []] = given.length > 0 ? given : [placesOf(args[0] ?? {}, at, names)]
      for (const other of args.slice(2 - given.length)) use(other, at, names)
      note(ofLambda(work, element.at === 0 ? [list] : [[], list], scope))
      return element.givesElement ? list : []
    }
    const places = placesOfArgs()
    if (passing.has(name)) return places.flat()
    const key = args.at(1 - given.length)
    if (name === 'lookup' && key?.type === 'string') return below(places[0] ?? [], String(key.value))
    note(places.flat())
    if (name === '' && node.procedure) use(node.procedure, at, names)
    return []
  }

  function ofLambda(
    lambda: Node,
    args: readonly (readonly ReadPlace[])[],
    { at, names: outer }: Scope,
  ): readonly ReadPlace[] {
    // A function that calls itself is followed once.
    if (active.has(lambda)) {
      note(args.flat())
      return []
    }
    active.add(lambda)
    const names = new Map(outer)
    for (const [index, { value }] of (lambda.arguments ?? []).entries())
      names.set(String(value), { places: args[index] ?? (args.length === 0 ? unknown : []) })
    const places = placesOf(lambda.body ?? {}, at, names)
    active.delete(lambda)
    return places
  }
}

function below(places: readonly ReadPlace[], key: string): readonly ReadPlace[] {
  return places.map(({ from, keys }) => ({ from, keys: [...keys, key] }))
}

/** Whether a name or `$` is in the arguments, outside of functions. */
function refersToContext(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const { type, value: word } = value as Node
  if (type === 'name' || (type === 'variable' && word === '')) return true
  return type !== 'lambda' && Object.values(value).some(refersToContext)
}
