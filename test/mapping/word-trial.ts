// word-trial.ts: a trial of fuzz.ts made of sources on one topic and their messages.

import { openMapperOf, sender, type World } from '../support/mapping-world.ts'
import type { Json, Trial } from './fuzz.ts'

export const hourMs = 3_600_000
export const at = Date.UTC(2026, 0, 31, 12)

/** A counter that jumps is left out where it comes, and not where its message is mapped again. */
const plausibility = { odometer: { jumps: 'off' }, engine_hours: { jumps: 'off' } }

type Parts = {
  name: string
  sources: readonly Json[]
  messages: readonly Json[]
  world?: World
  remembers?: boolean
} & Pick<Trial, 'judge' | 'own'>

export function trialOf({
  name,
  sources,
  messages,
  world = {},
  remembers = false,
  judge,
  own,
}: Parts): Trial {
  const topics = ['1', '2', '3'].map((device) => `${name}/${device}`)
  const shared = { topic: `${name}/{device}` }
  return {
    preset: name,
    open: () =>
      openMapperOf(
        sources.map((source) => ({ ...shared, ...source })),
        { clockOffsetMs: 0, plausibility, ...world },
      ),
    seeds: messages.flatMap((message) => {
      const bytes = Buffer.from(JSON.stringify(message))
      return topics.map((topic) => ({ topic, bytes, retain: false, dup: false, sender }))
    }),
    remembers,
    ...(judge && { judge }),
    ...(own && { own }),
  }
}

export const place = { latitude: { path: 'lat' }, longitude: { path: 'lon' } }
export const time = { path: 'ts', format: 'ms' }
