// perf-hooks.ts: node:perf_hooks. How long the real event loop was busy says nothing about the simulated one.

import * as real from 'node:perf_hooks'

export * from 'node:perf_hooks'

export const monitorEventLoopDelay = (() => ({
  enable: () => true,
  disable: () => true,
  reset: () => undefined,
  percentile: () => 0,
  min: 0,
  max: 0,
  mean: 0,
  stddev: 0,
  count: 0,
  exceeds: 0,
})) as unknown as typeof real.monitorEventLoopDelay

const all = { ...real, monitorEventLoopDelay }
export default all
export { all as 'module.exports' }
