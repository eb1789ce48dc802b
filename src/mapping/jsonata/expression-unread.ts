// expression-unread.ts: the keys of a message that the JSONata expression of its source does not read.

import { unreadIn, type UnreadKeys } from '../path/unread-keys.ts'
import { placesReadBy } from './expression-paths.ts'

/** `visitsMax`: values of a message that are looked at. */
export function compileExpressionUnread(
  expression: string,
  visitsMax: number,
): (message: unknown) => UnreadKeys {
  const places = placesReadBy(expression)
  const anywhere = new Set(places.flatMap(({ from, keys }) => (from === 'anywhere' ? keys.slice(-1) : [])))
  // A value whose place is unknown and that is used as a whole may be anything.
  const all = places.some(({ keys }) => keys.length === 0) || anywhere.has('*')
  const known = places.flatMap(({ from, keys }) => (from === 'root' ? [keys] : []))
  return (message) =>
    unreadIn(message, {
      isRead: (holder, key, above) =>
        all ||
        (!Array.isArray(holder) && (anywhere.has(key) || known.some((keys) => isAt(keys, above, key)))),
      unpacked: new Set(),
      visitsMax,
    })
}

function isAt(keys: readonly string[], above: readonly string[], key: string): boolean {
  if (keys.length !== above.length + 1) return false
  return keys.every((one, index) => one === '*' || one === (index < above.length ? above[index] : key))
}
