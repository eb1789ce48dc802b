// step-cases.ts: tests as data. NAME.cases.yaml beside NAME.test.ts has groups of tests; a test is a list of steps, and a
// step is a word with what belongs to it. NAME.test.ts says what each word does with the world that each test gets anew.
//
//   a group:
//     - test: what it shows
//       each: [a, b]       the test runs for each of them; {{each}} stands for it, in a text too
//       given: { … }       what the world is made of
//       steps:
//         - word: { … }
//
// `repeat: { times: 3, steps: [...] }` is a step of every file; in its steps {{n}} counts up from 0.
//
// A text like 5s, 10min, 2h or 3d is a time in milliseconds, one like /a.c/ a pattern. Values may have anchors.

import { readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'

const caseSchema = z.strictObject({
  test: z.string(),
  each: z.array(z.unknown()).min(1).default(['']),
  given: z.unknown().optional(),
  steps: z.array(z.record(z.string(), z.unknown())).min(1),
})

const repeatSchema = z.strictObject({ times: z.number(), steps: caseSchema.shape.steps })

type Case = z.infer<typeof caseSchema>
type Words<World> = Record<string, (world: World, value: never) => unknown>

const fileSchema = z.record(z.string(), z.array(caseSchema))
const unitMs: Record<string, number> = { ms: 1, s: 1000, min: 60_000, h: 3_600_000, d: 86_400_000 }

/** `files`: beside the test; by default the one that is named like it. */
export function stepCases<World>(
  testFile: string,
  start: (given: never) => World | Promise<World>,
  words: Words<World>,
  files: readonly string[] = [basename(testFile).replace(/(\.slow)?\.test\.ts$/, '.cases.yaml')],
): void {
  const texts = files.map((name) => readFileSync(join(dirname(testFile), name), 'utf8'))
  const groups = texts.flatMap((text) =>
    Object.entries(fileSchema.parse(parse(text, { merge: true, maxAliasCount: -1 }))),
  )
  describe.each(groups)('%s', (_group, cases) => {
    test.each(cases.flatMap(spread))('$test', async ({ given, steps }) => {
      expect.hasAssertions()
      const world = await (start as (given: unknown) => World | Promise<World>)(valueOf(given))
      await take(world, steps)
    })
  })

  async function take(world: World, steps: Case['steps']): Promise<void> {
    for (const [word, value] of steps.flatMap(Object.entries<unknown>)) {
      if (word === 'repeat') {
        const { times, steps: repeated } = repeatSchema.parse(value)
        const text = JSON.stringify(repeated)
        for (let n = 0; n < times; n += 1)
          await take(world, JSON.parse(text.replaceAll('{{n}}', `${n}`)) as Case['steps'])
        continue
      }
      const act = words[word] as ((world: World, value: unknown) => unknown) | undefined
      if (act === undefined) throw new Error(`"${word}" is no word of these tests`)
      await act(world, valueOf(value))
    }
  }
}

/** One case for each entry of `each`. */
function spread(one: Case): Case[] {
  return one.each.map((entry) => {
    const written = typeof entry === 'string' ? entry : JSON.stringify(entry)
    const within = JSON.stringify(written).slice(1, -1)
    const text = JSON.stringify({ ...one, each: [''] }).replaceAll('"{{each}}"', () => JSON.stringify(entry))
    return JSON.parse(text.replaceAll('{{each}}', () => within)) as Case
  })
}

function valueOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(valueOf)
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, valueOf(one)]))
  if (typeof value !== 'string') return value
  const [, pattern] = /^\/(.+)\/$/s.exec(value) ?? []
  if (pattern !== undefined) return matching(pattern)
  const [, count = '', unit = ''] = /^(-?[\d.]+)(ms|s|min|h|d)$/.exec(value) ?? []
  return unit === '' ? value : Number(count) * unitMs[unit]!
}

function matching(pattern: string): unknown {
  return expect.stringMatching(new RegExp(pattern, 's'))
}

/** Of each value `{ ago: MS }` the time so long before `nowMs`. */
export function withTimes(value: unknown, nowMs: number): unknown {
  if (Array.isArray(value)) return value.map((one) => withTimes(one, nowMs))
  if (typeof value !== 'object' || value === null) return value
  if ('ago' in value) return nowMs - Number(value.ago)
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withTimes(one, nowMs)]))
}
