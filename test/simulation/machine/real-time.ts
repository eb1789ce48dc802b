// real-time.ts: what globals.ts replaces, for the simulation itself.

export const { setImmediate: realImmediate } = globalThis

/** Runs all ticks and ready promises now, as Node does after each callback. */
export const runTicks = (process as unknown as { _tickCallback: () => void })._tickCallback
