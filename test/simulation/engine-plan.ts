// engine-plan.ts: what a seed draws of the message engine that stands before the gateway, and the config of its bridge.

import type { Random } from '../support/random.ts'

/** How the gateway gets messages of a message engine. */
export type EnginePlan = {
  custody: 'spool' | 'delivered'
  partitions: number
  window: number
  parkAfterS: number
  parkForS: number
  /** The engine says when it got a message. */
  stampsTime: boolean
}

export const engineHost = 'rabbit.test'
export const enginePort = 5672
const prefix = 'fleet'
export const partitionQueue = (index: number) => `${prefix}.${index}`
export const parkedQueue = `${prefix}.parked`
export const deadQueue = `${prefix}.dead`

export function queuesOf({ partitions }: EnginePlan): string[] {
  return [...Array.from({ length: partitions }, (_, index) => partitionQueue(index)), parkedQueue, deadQueue]
}

/** In the place of `ingest.broker.listeners`. */
export function engineText(plan: EnginePlan): string {
  const { custody, partitions, window, parkAfterS, parkForS } = plan
  return `
  bridges:
    - name: rabbit
      url: "amqp://${engineHost}:${enginePort}"
      queue: { prefix: ${prefix}, partitions: ${partitions} }
      bind: { keys: ["#"] }
      provision: true
      window: ${window}
      reconnect_max: 5s
      silent_after: 24h
      custody: ${custody}
      park_after: ${parkAfterS}s
      park_for: ${parkForS}s`
}

export function drawEngine(random: Random): EnginePlan {
  const window = random.pick([5, 20, 1000])
  return {
    custody: random.chance(0.8) ? 'delivered' : 'spool',
    partitions: random.pick([1, 2]),
    window,
    parkAfterS: random.pick([2, 5, 20]),
    parkForS: random.pick([3, 10, 30]),
    stampsTime: random.chance(0.6),
  }
}
