// stage.ts: one word of a field, compiled.

import type { Read } from '../path/path.ts'

/** Gets the value that the words before it made, and the place of the record. */
export type Stage = {
  /** For people: `bit 3`, `minus start`. */
  readonly text: string
  readonly apply: (value: unknown, ...place: Parameters<Read>) => unknown
}
