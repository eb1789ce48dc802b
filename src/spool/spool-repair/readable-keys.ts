// readable-keys.ts: records whose key a faulty memory or disk has changed can be too short, or no JSON text.
// A repair leaves them where they are.

import type { LevelFiles, StoreRange } from '../../storage/storage.ts'

/** What `read` makes of a key; null where the key is damaged. */
export function unlessDamaged<Result>(read: () => Result): Result | null {
  try {
    return read()
  } catch (error) {
    if (error instanceof RangeError || error instanceof SyntaxError) return null
    throw error
  }
}

/** Those with a damaged key are left out. */
export async function eachRecord(
  files: LevelFiles,
  range: StoreRange,
  visit: (key: Buffer, value: Buffer) => void,
): Promise<void> {
  for await (const page of files.pages(range))
    for (const [key, value] of page) unlessDamaged(() => visit(key, value))
}
