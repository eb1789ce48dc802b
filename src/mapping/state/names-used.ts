// names-used.ts: the names of the single values that a source uses. All other values are ignored: some
// vehicles send hundreds of them per second.
//
// A name is used where a path of the source begins with it: in `map`, in `fix`, in a condition.

import { pathsReadBy } from '../path/paths-used.ts'

/** The first keys of all paths in `options`. Malformed paths are reported elsewhere. */
export function namesReadBy(options: unknown): Set<string> {
  const names = new Set<string>()
  for (const { path } of pathsReadBy(options)) {
    const [first] = path.steps
    // For a coalesced record, the whole message is the record.
    if (path.from !== 'up' && first?.kind === 'key') names.add(first.key)
  }
  // `$time` is made when the record closes. A value of that name from a device must not replace it.
  names.delete('$time')
  return names
}
