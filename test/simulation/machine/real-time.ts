// real-time.ts: what globals.ts replaces, for the simulation itself.

export const { setImmediate: realImmediate } = globalThis
