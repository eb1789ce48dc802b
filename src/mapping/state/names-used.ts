// names-used.ts: which of the values that come one by one a source makes use of: all others are noise, and
// some vehicles send hundreds of those a second.
//
// A value counts where a path of the source begins with its name: in `map`, in `fix`, in a condition.

import { pathsReadBy } from '../path/paths-used.ts'

/** Names that paths anywhere in `options` begin with. What is malformed is told elsewhere. */
export function namesReadBy(options: unknown): Set<string> {
  const names = new Set<string>()
  for (const { path } of pathsReadBy(options)) {
    const [first] = path.steps
    // Of a record that was put together, the message itself is the record.
    if (path.from !== 'up' && first?.kind === 'key') names.add(first.key)
  }
  // The record's own time is made when it closes; a device that sends a value of that name cannot forge it.
  names.delete('$time')
  return names
}
