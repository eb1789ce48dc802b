// act.ts: what the acts of a run share.

import type { Random } from '../../support/random.ts'
import type { Status } from '../../../src/ops/status-schema/status-schema.ts'
import type { Daemon } from '../daemon.ts'
import type { Machine } from '../machine/machine.ts'
import type { Plan } from '../plan.ts'
import type { Fleet } from '../world/fleet.ts'
import type { Service } from '../world/service.ts'
import type { Causes } from '../oracle/conditions.ts'
import type { DeadLetter } from '../oracle/deliveries.ts'
import type { EngineOracle } from '../oracle/engine.ts'
import type { EndpointWatch } from '../oracle/endpoint-watch.ts'
import type { Ends } from '../oracle/ends.ts'
import type { Flips } from './flip-acts.ts'
import type { Keys } from './key-acts.ts'
import type { LaneEvents } from '../oracle/lanes.ts'
import type { OpenConditions } from '../oracle/open-conditions.ts'
import type { LostPositions } from '../oracle/lost-positions.ts'
import type { OutageEvents } from '../oracle/repeats.ts'
import type { Operator } from './operator.ts'

export type World = {
  plan: Plan
  machine: Machine
  daemon: Daemon
  fleet: Fleet
  engine: EngineOracle | null
  services: Service[]
  keys: Keys
  flips: Flips
  operator: Operator
  /** As the daemon shows them at the end. */
  deadLetters: readonly DeadLetter[] | null
  endpoints: EndpointWatch
  conditions: OpenConditions
  /** What the daemon said of its lanes, endpoints and lost positions. */
  said: { lanes: LaneEvents; outages: OutageEvents; positions: LostPositions }
  random: Random
  steps: string[]
  /** What the gateway said of itself at the last of so many looks; null where it did not run. */
  last: { status: Status | null; looks: number }
  reach: (state: string) => void
  broken: string[]
  causes: Causes
  ends: Ends
  /** Another spool is in the place of the own one: a process that starts now cannot know. */
  isSwapped: boolean
  /** No act begins any more. */
  isSettling: boolean
}

/** What ends it, where it lasts. */
export type EndAct = () => void
