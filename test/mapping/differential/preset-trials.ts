// preset-trials.ts: the presets that have a fast path, with templates made of the messages of their cases.

import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parse } from 'yaml'
import type { Random } from '../../support/random.ts'
import type { Template } from './hostile-json.ts'
import type { Trial } from './trial.ts'

const folder = resolve(import.meta.dirname, '../../../config/presets')

type Case = { topic?: string; message?: string; messages?: readonly Case[] }

export function presetTrial(name: string): Trial {
  const read = (end: string): unknown => parse(readFileSync(`${folder}/${name}${end}`, 'utf8'))
  const { cases } = read('.cases.yaml') as { cases: readonly Case[] }
  const all = cases.flatMap((one) => one.messages ?? [one])
  const seeds = all.flatMap(({ message }) => objectIn(message))
  return {
    name,
    source: { name, ...(read('.yaml') as Record<string, unknown>) },
    world: { devices: { unknown: 'accept' }, clockOffsetMs: 0 },
    topics: [...new Set(all.map(({ topic = '' }) => topic))],
    template: (clock, random) => templateOf(random.pick(seeds), clock),
  }
}

function objectIn(message: string | undefined): Record<string, unknown>[] {
  try {
    const value: unknown = JSON.parse(message ?? '')
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? [{ ...value }] : []
  } catch {
    return []
  }
}

function templateOf(seed: Record<string, unknown>, clock: { now: number }): Template {
  return Object.fromEntries(
    Object.entries(seed).map(([key, value]) => [
      key,
      typeof value === 'object' && value !== null && !Array.isArray(value)
        ? templateOf({ ...value }, clock)
        : (random: Random) => varied(value, clock, random),
    ]),
  )
}

/** Times go on with the clock; other numbers grow a little. */
function varied(value: unknown, { now }: { now: number }, random: Random): unknown {
  if (typeof value === 'string') return /^\d{4}-\d\d-\d\dT/.test(value) ? new Date(now).toISOString() : value
  if (typeof value !== 'number') return value
  if (value > 1e12) return now
  if (value > 1e9) return Math.floor(now / 1000)
  return random.chance(0.5) ? value : Number((value + random.next()).toFixed(random.below(4)))
}
