// no-result.ts: what an operation makes of values that it has no result for, such as a division by zero. It
// is neither a number, nor true or false, nor a text, so every field omits it and counts it. An absent value
// is undefined or null instead, and is not counted.

export class NoResult {
  /** Continues "no value: ". */
  readonly reason: string

  constructor(reason: string) {
    this.reason = reason
    Object.freeze(this)
  }
}

/** Absent, or without a result. */
export function isNone(value: unknown): value is undefined | null | NoResult {
  return value === undefined || value === null || value instanceof NoResult
}

/** Why a value that must be there is not, as a sentence; undefined for any other value. */
export function withoutResult(name: string, value: unknown): string | undefined {
  return value instanceof NoResult ? `The ${name} has no value: ${value.reason}.` : undefined
}
