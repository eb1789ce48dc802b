// suggestion.ts: which of the known words a misspelt one was meant to be.

/** The known word nearest to `word`; undefined where none is near enough to be a slip of the fingers. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  let best: string | undefined
  let distanceMin = Math.max(1, Math.floor(word.length / 3)) + 1
  for (const candidate of known) {
    const distance = isTruncated(word, candidate)
      ? 1
      : editDistance(word.toLowerCase(), candidate.toLowerCase())
    if (distance < distanceMin) {
      distanceMin = distance
      best = candidate
    }
  }
  return best
}

/** `max` for `max_bytes`, and the other way round. */
function isTruncated(word: string, candidate: string): boolean {
  return word.length >= 3 && (candidate.startsWith(`${word}_`) || candidate.endsWith(`_${word}`))
}

/** Insertions, deletions, replacements and swaps of neighbours that make one word of the other. */
function editDistance(a: string, b: string): number {
  // Keys of a config are short; a long one is no slip of the fingers and not worth the square of its length.
  if (a.length > 64 || b.length > 64) return Infinity
  let before: number[] = []
  let above = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row]
    for (let column = 1; column <= b.length; column += 1) {
      const same = a[row - 1] === b[column - 1]
      let distance = Math.min(
        (above[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (above[column - 1] ?? 0) + (same ? 0 : 1),
      )
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      if (swapped) distance = Math.min(distance, (before[column - 2] ?? 0) + 1)
      current.push(distance)
    }
    before = above
    above = current
  }
  return above[b.length] ?? Infinity
}
