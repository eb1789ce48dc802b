// What a mapping sends of messages, one after the other. The cases are the files `*.mapping.yaml` of test/mapping:
//
//   usual:                what the cases of the file share
//   cases:
//     - name:             a sentence
//       examples:         each a case with these words over those of the case, and those over the usual ones
//
// The words of a case:
//
//   map, source           fields and other options of one source over the typical one (truckSource); null removes
//   sources               whole sources instead
//   world                 the other sections of the config, and the table of devices
//   problems              the config is refused: a part of each of its problems
//   steps                 messages in turn, each with the words of a step; a case of one message has them itself
//   omitted, flagged      all that is counted at the end
//   withheld, resets      the withheld values of truck-7, and the counters that began anew
//   clocks                how many devices have a clock that was judged
//
// The words of a step:
//
//   message               its keys over the usual ones, `without` some; `raw`: any JSON or text instead
//   at                    the time `ts` of the message, and `arrives`: both in seconds after the start
//   with                  topic, retain and so on; `again`: it was kept, and is mapped again
//   sent                  values of the payload, or of each payload; null: it has none
//   result                the verdict, such as NO_TIME or `no fix`; `detail`: its sentence, or a part before and behind `...`
//   by                    the source that took it
//
// A value of `sent` is named by the type of a signal (DISTANCE), by its place in the payload (gps.latitude), or is the
// `time`, as seconds after the start or written out.

import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { z, ZodError } from 'zod'
import { compileSources } from '../../../src/mapping/compile/compile.ts'
import type { MapResult } from '../../../src/mapping/mapping.ts'
import {
  configOf,
  messageOf,
  openMapperOf,
  payloadsIn,
  truckSource,
  verdictOf,
  type Sent,
  type World,
} from '../../support/mapping-world.ts'

const start = 1_750_000_000_000

const json = z.record(z.string(), z.unknown())
const stepWords = {
  message: json.default({}),
  without: z.array(z.string()).default([]),
  raw: z.unknown().optional(),
  at: z.number().default(0),
  arrives: z.number().optional(),
  with: json.default({}),
  again: z.boolean().default(false),
  sent: z.union([json, z.array(json)]).optional(),
  result: z.string().optional(),
  detail: z.string().optional(),
  by: z.string().optional(),
}
const step = z.strictObject(stepWords)
const words = z.strictObject({
  ...stepWords,
  map: json.default({}),
  source: json.default({}),
  sources: z.array(z.unknown()).optional(),
  world: json.default({}),
  problems: z.array(z.string()).optional(),
  steps: z.array(json).optional(),
  omitted: z.record(z.string(), z.number()).optional(),
  flagged: z.record(z.string(), z.number()).optional(),
  withheld: z.array(json).optional(),
  resets: z.array(json).optional(),
  clocks: z.number().optional(),
})
const content = z.strictObject({
  usual: json.default({}),
  cases: z.array(z.looseObject({ name: z.string(), examples: z.array(json).default([{}]) })),
})

type Json = z.output<typeof json>
type Case = z.output<typeof words>
type Step = z.output<typeof step>

const folder = resolve(import.meta.dirname, '..')
const files = globSync('*/*.mapping.yaml', { cwd: folder }).toSorted()

describe.each(files)('%s', (file) => {
  const { usual, cases } = content.parse(parse(readFileSync(join(folder, file), 'utf8'), { merge: true }))
  const rows = cases.flatMap(({ name, examples, ...own }) =>
    examples.map((example) => {
      const { name: ownName = example, ...more } = example
      const shown = typeof ownName === 'string' ? ownName : JSON.stringify(ownName).slice(0, 150)
      return { name: examples.length > 1 ? `${name}: ${shown}` : name, parts: [usual, own, more] }
    }),
  )

  test.each(rows)('$name', ({ parts }) => {
    const one = words.parse(merged(parts))
    const wanted = wantedIn(one)
    expect(wanted).not.toEqual([])
    expect(foundOf(one)).toEqual(wanted)
  })
})

/** What several parts say of the map and so on is added up; of all else the last one counts. */
function merged(parts: readonly Json[]): Json {
  const added = ['map', 'source', 'world', 'message', 'with'].map((word) => [
    word,
    Object.assign({}, ...parts.map((part) => part[word])) as Json,
  ])
  return { ...Object.assign({}, ...parts), ...Object.fromEntries(added) } as Json
}

/** All that a case says of its end, and then of its steps. */
function wantedIn(one: Case): unknown[] {
  const { problems, omitted, flagged, withheld, resets, clocks } = one
  if (problems !== undefined) return [{ problems }]
  const ends = said({ omitted, flagged, withheld, resets, clocks })
  const steps = stepsOf(one).map(({ sent, result, detail, by }) =>
    said({ sent: sent && [sent].flat(), result, detail, by }),
  )
  return [ends, ...steps].filter((each) => Object.keys(each).length > 0)
}

/** The same as it is found. */
function foundOf(one: Case): unknown[] {
  const { map, ...rest } = truckSource(one.map, one.source)
  const sources = one.sources ?? [{ ...present(rest), map: present(map) }]
  if (one.problems !== undefined) return [{ problems: likeAll(problemsOf(sources, one.world), one.problems) }]
  const reset: unknown[] = []
  const mapper = openMapperOf(sources, { ...one.world, counterReset: (each) => void reset.push(each) })
  const steps = stepsOf(one).map((each) => foundIn(mapper.map(messageIn(each), !each.again), each))
  const { omitted, flagged } = mapper.counters()
  const ends = said({
    omitted: one.omitted && Object.fromEntries(omitted),
    flagged: one.flagged && Object.fromEntries(flagged),
    withheld: one.withheld && pickedAs(mapper.withheldOf('truck-7'), one.withheld),
    resets: one.resets && pickedAs(reset, one.resets),
    clocks: one.clocks === undefined ? undefined : [...mapper.deviceClocks()].length,
  })
  return [ends, ...steps].filter((each) => Object.keys(each).length > 0)
}

function stepsOf(one: Case): Step[] {
  const own = Object.fromEntries(Object.keys(stepWords).map((word) => [word, one[word as keyof Step]]))
  return (one.steps ?? [own]).map((each) =>
    step.parse({
      ...each,
      message: { ...one.message, ...(each['message'] as Json) },
      with: { ...one.with, ...(each['with'] as Json) },
    }),
  )
}

function foundIn(result: MapResult, { sent, result: verdict, detail, by }: Step): Json {
  const found = 'detail' in result ? result.detail : ''
  return said({
    sent: sent && sentIn(result, [sent].flat()),
    result: verdict && verdictOf(result),
    detail: detail && like(found, detail),
    by: by && result.source,
  })
}

function said(all: Json): Json {
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
}

/** What is wanted, if the text is like it. */
function like(found: string, wanted: string): string {
  const isLike = wanted.includes('...') && wanted.split('...').every((part) => found.includes(part))
  return isLike ? wanted : found
}

function likeAll(found: readonly string[], wanted: readonly string[]): string[] {
  return found.map((one, index) =>
    like(one, `...${wanted[index] ?? ''}...`).replaceAll(/^\.\.\.|\.\.\.$/g, ''),
  )
}

/** Of each the keys that are wanted of it. */
function pickedAs(found: readonly unknown[], wanted: readonly Json[]): Json[] {
  return found.map((one, index) =>
    Object.fromEntries(Object.keys(wanted[index] ?? {}).map((key) => [key, (one as Json)[key]])),
  )
}

/** With their places, as `sources.0.map.time needs a zone`. */
function problemsOf(sources: readonly unknown[], world: World): string[] {
  try {
    const { problems } = compileSources(configOf(sources, world))
    return problems.map(({ path, message }) => `${path.join('.')} ${message}`)
  } catch (error) {
    if (!(error instanceof ZodError)) throw error
    return error.issues.map(({ path, message }) => `${path.join('.')} ${message}`)
  }
}

function messageIn({ message, without, raw, at, arrives, with: rest }: Step) {
  const whole = Object.entries({ ts: start + at * 1000, ...message })
  const usual = Object.fromEntries(whole.filter(([key]) => !without.includes(key)))
  const arrival = arrives === undefined ? {} : { arrivedAt: start + arrives * 1000 }
  return messageOf(raw ?? usual, { ...arrival, ...rest })
}

function sentIn(result: MapResult, wanted: readonly Json[]): Json[] {
  return payloadsIn(result).map(({ json: text }, index) =>
    named(JSON.parse(text) as Sent, wanted[index] ?? {}),
  )
}

/** The values of a payload under the names that are expected. */
function named(payload: Sent, wanted: Json): Json {
  const values = Object.entries(wanted).map(([name, value]) => [name, valueOf(payload, name, value) ?? null])
  return Object.fromEntries(values) as Json
}

function valueOf(payload: Sent, name: string, wanted: unknown): unknown {
  const { signalTimestamp } = payload
  if (name === 'time' && typeof wanted === 'string') return new Date(signalTimestamp).toISOString()
  if (name === 'time') return (signalTimestamp - start) / 1000
  if (/^[A-Z0-9_]+$/.test(name)) return payload.signals?.find(({ type }) => type === name)?.value
  return name.split('.').reduce<unknown>((value, key) => (value as Json | undefined)?.[key], payload)
}

function present(options: Json): Json {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== null))
}
