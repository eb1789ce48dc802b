// readable-keys.ts: records whose key a faulty memory or disk has changed can be too short, or no JSON text.
// A repair leaves them where they are.

/** What `read` makes of a key; null where the key is damaged. */
export function unlessDamaged<Result>(read: () => Result): Result | null {
  try {
    return read()
  } catch (error) {
    if (error instanceof RangeError || error instanceof SyntaxError) return null
    throw error
  }
}
