// real-time.ts: what globals.ts replaces, for the simulation itself.

export const { setImmediate: realImmediate } = globalThis

/** Processor time of this process so far. */
export function realCpuMs(): number {
  const { user, system } = cpuUsage()
  return (user + system) / 1000
}

const cpuUsage = process.cpuUsage.bind(process)

/** Runs all ticks and ready promises now, as Node does after each callback. */
export const runTicks = (process as unknown as { _tickCallback: () => void })._tickCallback
