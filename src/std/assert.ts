// assert.ts: a programmer's mistake ends the process before it can write anything.

/** Throws when `condition` is false. The code is wrong, not its input. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`)
}

/** The end of a switch over a closed union: does not compile while a case is missing. */
export function assertNever(value: never): never {
  throw new Error(`assertion failed: unexpected variant ${JSON.stringify(value)}`)
}
