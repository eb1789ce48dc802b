// nearest-names.ts: the known names that may be meant by another one, such as the key of a device.

import { distance } from 'fastest-levenshtein'

const lengthMax = 64

/** At most `most`, the most similar first: by a typing mistake in four characters, or as its start. */
export function nearestNames(name: string, names: Iterable<string>, most = 3): readonly string[] {
  if (name === '' || name.length > lengthMax) return []
  const wanted = name.toLowerCase()
  const allowed = Math.max(1, Math.floor(wanted.length / 4))
  const found: { name: string; apart: number }[] = []
  for (const known of names) {
    if (known.length > lengthMax) continue
    const other = known.toLowerCase()
    const isPart = wanted.length >= 3 && other.includes(wanted)
    const apart = Math.abs(other.length - wanted.length) > allowed ? Infinity : distance(wanted, other)
    if (apart <= allowed) found.push({ name: known, apart })
    else if (isPart) found.push({ name: known, apart: allowed + 1 })
  }
  return found
    .sort((a, b) => a.apart - b.apart || (a.name < b.name ? -1 : 1))
    .slice(0, most)
    .map((one) => one.name)
}
