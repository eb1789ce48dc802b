// fact.ts: the form of a fact: what it means, where it is read, and its metric where it has one. Of facts are
// made the document of /status, its schema, type and reference, and their metrics: a number has one row.
//
//   count, text, ...   one value: that of the same key of what the object is about, or what `read` gives
//   group              an object
//   maybe              an object, or null
//   list               one object for each entry. A label of the metrics in it is a key of the entry
//
// Times are read by the clock of the machine, and shown in the time of the gateway: `correctedMs` later. One
// that is noted in the time of the gateway (`isOurs`) is shown as it is.
//
// What is not known (its stage is missing) is 0, false or null in the document, and has no metric. The unit
// of a time or a duration in a metric is seconds.

import { z } from 'zod'
import { assert } from '../../std/assert.ts'
import { isoTimeOrNull } from '../../std/clock.ts'
import * as types from './value-types.ts'

export type Sample = { labels: Record<string, string>; value: number }

export type MetricName = `gateway_${string}` | `process_${string}`

export type Metric<View> = {
  name: MetricName
  type: 'counter' | 'gauge'
  help: string
  labels: readonly string[]
  read(this: void, view: View): readonly Sample[]
}

/** `key`: its name in the object. */
export type Fact<View, Schema extends z.ZodType = z.ZodType> = {
  schema: Schema
  read(this: void, view: View | undefined, key: string, correctedMs: number): z.output<Schema>
  metrics(this: void, key: string): readonly Metric<View | undefined>[]
}

type Maybe<Value> = Value | null | undefined
type Read<View, Value> = (this: void, view: View) => Maybe<Value>
type MaybeMetric = MetricName | null | undefined
type TimeKind = { isOurs?: boolean }

export function count<View>(meaning: string, metric?: MaybeMetric, read?: Read<View, number>) {
  return fact(types.count().describe(meaning), read, { unknown: 0, metric })
}

export function countOrNull<View>(meaning: string, metric?: MaybeMetric, read?: Read<View, number>) {
  return fact(types.count().nullable().describe(meaning), read, { metric })
}

export function secondsOrNull<View>(meaning: string, metric?: MaybeMetric, read?: Read<View, number>) {
  return fact(types.seconds().nullable().describe(meaning), read, { metric })
}

/** A difference of two clocks, in ms. */
export function offsetOrNull<View>(meaning: string, metric?: MaybeMetric, read?: Read<View, number>) {
  return fact(z.number().nullable().describe(meaning), read, { metric, scale: 0.001 })
}

export function flag<View>(meaning: string, metric?: MaybeMetric, read?: Read<View, boolean>) {
  return fact(z.boolean().describe(meaning), read, { unknown: false, metric })
}

/** Read as Unix time in ms. */
export function time<View>(
  meaning: string,
  metric?: MaybeMetric,
  read?: Read<View, number>,
  { isOurs = false }: TimeKind = {},
) {
  const shown = isOurs ? isoTimeOrNull : shownTime
  return fact<View, z.ZodISODateTime>(types.time().describe(meaning), read, { metric, scale: 0.001, shown })
}

export function timeOrNull<View>(
  meaning: string,
  metric?: MaybeMetric,
  read?: Read<View, number>,
  { isOurs = false }: TimeKind = {},
) {
  const shown = isOurs ? isoTimeOrNull : shownTime
  const schema = types.timeOrNull().describe(meaning)
  return fact<View, z.ZodNullable<z.ZodISODateTime>>(schema, read, { metric, scale: 0.001, shown })
}

function shownTime(at: number | null, correctedMs: number): string | null {
  return at === null ? null : isoTimeOrNull(at + correctedMs)
}

export function text<View>(meaning: string, read?: Read<View, string>) {
  return fact(z.string().describe(meaning), read)
}

export function textOrNull<View>(meaning: string, read?: Read<View, string>) {
  return fact(z.string().nullable().describe(meaning), read)
}

export function word<View, const Word extends string>(
  meaning: string,
  words: readonly Word[],
  read?: Read<View, Word>,
) {
  return fact(z.enum(words).describe(meaning), read)
}

export function wordOrNull<View, const Word extends string>(
  meaning: string,
  words: readonly Word[],
  read?: Read<View, Word>,
) {
  return fact(z.enum(words).nullable().describe(meaning), read)
}

type How = {
  /** In the document, where it is not known; null without it. */
  unknown?: unknown
  metric?: MaybeMetric
  /** Of the value in the metric. */
  scale?: number
  /** The value in the document. */
  shown?: (value: never, correctedMs: number) => unknown
}

/** Any other value. Its schema has the meaning. */
export function fact<View, Schema extends z.ZodType>(
  schema: Schema,
  read?: Read<View, unknown>,
  { unknown = null, metric, scale = 1, shown = (value) => value }: How = {},
): Fact<View, Schema> {
  const help = schema.description ?? ''
  const valueOf = (view: View | undefined, key: string): unknown => {
    if (view === undefined) return undefined
    if (read !== undefined) return read(view)
    const values = view as Record<string, unknown>
    assert(key in values, `there is a value for ${help}`)
    return values[key]
  }
  return {
    schema,
    read(view, key, correctedMs) {
      const value = (valueOf(view, key) ?? null) as never
      return (shown(value, correctedMs) ?? unknown) as z.output<Schema>
    },
    metrics(key) {
      const name = metric ?? null
      if (name === null) return []
      const type = name.endsWith('_total') ? 'counter' : 'gauge'
      const samples = (view: View | undefined) => {
        const value = valueOf(view, key) ?? null
        return value === null ? [] : one(Number(value) * scale)
      }
      return [{ name, type, help, labels: [], read: samples }]
    },
  }
}

export function one(value: Maybe<number>): readonly Sample[] {
  return value === undefined || value === null ? [] : [{ labels: {}, value }]
}

type Rows<View> = Record<string, Fact<View>>
type SchemaOf<Named extends Rows<never>> = z.ZodObject<
  { [Key in keyof Named]: Named[Key]['schema'] },
  z.core.$strict
>

export function group<View, Item, Named extends Rows<Item>>(
  meaning: string,
  itemOf: Read<View, Item>,
  rows: Named,
): Fact<View, SchemaOf<Named>> {
  return {
    schema: meaning === '' ? schemaOf(rows) : schemaOf(rows).describe(meaning),
    read: (view, _, correctedMs) =>
      documentOf(rows, view === undefined ? undefined : (itemOf(view) ?? undefined), correctedMs),
    metrics: () => metricsIn(rows, itemsOf(itemOf), {}),
  }
}

export function maybe<View, Item, Named extends Rows<Item>>(
  meaning: string,
  itemOf: Read<View, Item>,
  rows: Named,
): Fact<View, z.ZodNullable<SchemaOf<Named>>> {
  const all = itemsOf(itemOf)
  return {
    schema: schemaOf(rows).nullable().describe(meaning),
    read: (view, _, correctedMs) => all(view).map((item) => documentOf(rows, item, correctedMs))[0] ?? null,
    metrics: () => metricsIn(rows, all, {}),
  }
}

export function list<View, Item, Named extends Rows<Item>>(
  meaning: string,
  entriesOf: Read<View, readonly Item[]>,
  rows: Named,
  labels: Record<string, keyof Item> = {},
): Fact<View, z.ZodArray<SchemaOf<Named>>> {
  const all = (view: View | undefined) => (view === undefined ? [] : (entriesOf(view) ?? []))
  return {
    schema: z.array(schemaOf(rows)).describe(meaning),
    read: (view, _, correctedMs) => all(view).map((item) => documentOf(rows, item, correctedMs)),
    metrics: () => metricsIn(rows, all, labels),
  }
}

function itemsOf<View, Item>(itemOf: Read<View, Item>) {
  return (view: View | undefined): Item[] => {
    const item = view === undefined ? null : itemOf(view)
    return item === null || item === undefined ? [] : [item]
  }
}

function schemaOf<Named extends Rows<never>>(rows: Named): SchemaOf<Named> {
  const schemas = Object.entries(rows).map(([key, { schema }]) => [key, schema])
  return types.record(Object.fromEntries(schemas)) as SchemaOf<Named>
}

function documentOf<Item, Named extends Rows<Item>>(
  rows: Named,
  item: Item | undefined,
  correctedMs: number,
): z.output<SchemaOf<Named>> {
  const document: Record<string, unknown> = {}
  for (const key in rows) document[key] = rows[key]!.read(item, key, correctedMs)
  return document as z.output<SchemaOf<Named>>
}

function metricsIn<View, Item>(
  rows: Rows<Item>,
  all: (view: View | undefined) => readonly Item[],
  labels: Record<string, keyof Item>,
): readonly Metric<View | undefined>[] {
  const named = Object.entries(labels)
  const labelsOf = (item: Item) => Object.fromEntries(named.map(([label, key]) => [label, String(item[key])]))
  const metrics = Object.entries(rows).flatMap(([key, row]) => row.metrics(key))
  return metrics.map((metric) => ({
    ...metric,
    labels: [...Object.keys(labels), ...metric.labels],
    read: (view) =>
      all(view).flatMap((item) =>
        metric.read(item).map((sample) => ({ ...sample, labels: { ...labelsOf(item), ...sample.labels } })),
      ),
  }))
}
