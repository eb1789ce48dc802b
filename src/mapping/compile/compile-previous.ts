// compile-previous.ts: what reads values of the record before (`previous.odo`): which values these are, and
// where no expression may read them.
//
// Only signals and fields outside of `gps` may. All else decides what a record is: its device, its time, its
// place and its payloadId must be the same whatever came before it.

import type { SourceConfig } from '../config.ts'
import { chainOf } from '../expression/names.ts'
import { childrenOf, nodesOf, parseExpression, type Node } from '../expression/syntax.ts'
import { compileFound } from '../fields/fields.ts'
import type { CompiledPrevious, PreviousValue } from './source-plan.ts'
import { previousName, stepsText, previousTimeName, type Path } from '../path/path.ts'
import { pathsReadBy } from '../path/paths-used.ts'
import type { Keys, Scope } from './compile-scope.ts'

/** Values of a device that a source keeps. */
const valuesMax = 16

const forMsDefault = 30 * 86_400_000

type Writers = Pick<CompiledPrevious, 'signals' | 'hasSignals' | 'fields'>

/** Null where nothing reads a value of the record before. Problems are reported. */
export function compilePrevious(
  source: SourceConfig,
  writers: Writers,
  scope: Scope,
): CompiledPrevious | null {
  reportElsewhere(source, scope)
  const reads = pathsReadBy({ signals: source.map.signals, fields: source.map.fields }, ['map']).filter(
    ({ path }) => path.from === 'previous',
  )
  const [first] = reads
  if (first === undefined) {
    if (source.previous !== undefined)
      scope.report(['previous'], 'is set, but no expression reads `previous`.')
    return null
  }
  for (const option of ['coalesce', 'thin', 'merge'] as const)
    if (source[option] !== undefined)
      scope.report(
        first.at,
        `reads a previous value, which cannot be combined with ${option}: ${reasons[option]}.`,
      )
  const paths = new Map(reads.map(({ path }) => [previousName(path.steps), path]))
  if (paths.size > valuesMax)
    scope.report(first.at, `is one of ${paths.size} previous values; at most ${valuesMax} are kept.`)
  const computed = new Set(
    [...source.map.signals, ...Object.values(source.map.fields)].flatMap((field) =>
      pathsReadBy(field)
        .filter(({ path, at }) => path.from === 'previous' && isComputed(field, at))
        .map(({ path }) => previousName(path.steps)),
    ),
  )
  const values: PreviousValue[] = []
  for (const [name, path] of paths)
    if (name !== previousTimeName)
      values.push({ name, read: readOf(source, path), isNumber: computed.has(name) })
  const forMs = source.previous?.for ?? forMsDefault
  return { values, names: new Set(paths.keys()), forMs, ...writers }
}

const conditions: ReadonlySet<string | number> = new Set(['when'])

type Field = SourceConfig['map']['signals'][number] | SourceConfig['map']['fields'][string]

/** Whether a previous value that is read at `at` is computed with. */
function isComputed({ expr }: Field, [word]: Keys): boolean {
  return word === 'expr' && expr !== undefined && computesWithPrevious(parseExpression(expr))
}

const operators: ReadonlySet<string> = new Set(['+', '-', '*', '/', '%', '-_'])

/** Whether a previous value is an operand of arithmetic, or is read as a number. */
function computesWithPrevious(tree: Node): boolean {
  return [...nodesOf(tree)].some((node) => {
    const isNumber =
      operators.has(node.op) || ((node.op === 'call' || node.op === 'rcall') && node.args[0] === 'number')
    return isNumber && childrenOf(node).some((child) => chainOf(child)?.root === 'previous')
  })
}

const reasons = {
  coalesce: 'a record of several messages has no record before it while it is collected',
  thin: 'the difference in an omitted payload would be lost',
  merge: 'a record that waits for others is kept without what came before it',
}

/** As the fields of the source read it: what means "no value" there is none here. */
function readOf({ map }: SourceConfig, { steps }: Path): PreviousValue['read'] {
  const path = stepsText('', steps)
  const own = [...map.signals, ...Object.values(map.fields)].filter((field) => readsSteps(field, path))
  // Beside an expression they are results, not values of the message.
  const absent = own.flatMap((field) => (field.expr === undefined ? (field.absent ?? []) : []))
  return compileFound({ path, absent }, [])
}

function readsSteps(options: object, text: string): boolean {
  return pathsReadBy(options).some(
    ({ path: { from, steps }, at }) =>
      (from === 'record' || from === 'previous') &&
      !at.some((key) => conditions.has(key)) &&
      stepsText('', steps) === text,
  )
}

function reportElsewhere({ map, previous: _previous, ...source }: SourceConfig, { report }: Scope): void {
  const { signals: _signals, fields, ...record } = map
  const inGps = Object.fromEntries(Object.entries(fields).filter(([name]) => /^gps(\.|$)/.test(name)))
  const places = [source, { map: record }, { map: { fields: inGps } }].flatMap((options) =>
    pathsReadBy(options).flatMap(({ path: { from }, at }) => (from === 'previous' ? [at] : [])),
  )
  for (const at of places)
    report(
      at,
      'reads a previous value, which only signals and fields outside of gps can: device, time, position and the choice ' +
        'of records must be the same whatever came before.',
    )
}
