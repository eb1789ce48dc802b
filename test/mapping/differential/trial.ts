// trial.ts: a source whose messages are mapped in both ways.

import type { World } from '../../support/mapping-world.ts'
import type { Random } from '../../support/random.ts'
import type { Template } from './hostile-json.ts'

export type Trial = {
  name: string
  source: Record<string, unknown>
  /** Sources that share its topics. */
  others?: readonly Record<string, unknown>[]
  world: World
  topics: readonly string[]
  template: (clock: { now: number }, random: Random) => Template
}
