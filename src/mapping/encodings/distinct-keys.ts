// distinct-keys.ts: whether a JSON text has so many different keys that it would take long to read: an object
// of 80,000 of them takes a tenth of a second, in which nothing else happens. The same few keys in 80,000
// places, as in a list of records, take a tenth of that.
//
// Each eighth key is looked at. A text in the message that looks like a key counts, too.

const keyEnd = '":'
const everyKey = 8

/** A shorter text cannot have too many. */
export const fewKeysLength = 65_536

export const keysMax = 10_000

export function hasTooManyKeys(text: string): boolean {
  const distinct = new Set<string>()
  let count = 0
  for (let at = text.indexOf(keyEnd); at !== -1; at = text.indexOf(keyEnd, at + 2)) {
    count += 1
    if (count % everyKey !== 0) continue
    distinct.add(text.slice(text.lastIndexOf('"', at - 1), at))
    if (distinct.size * everyKey > keysMax) return true
  }
  return false
}
