// nearest-word.ts: finds the known word that is most similar to a misspelt one.

import { distance } from 'fastest-levenshtein'

/** Keys are short. A longer word is no typing mistake. */
const lengthMax = 64

/** The known word nearest to `word`; undefined where none is near enough to be a typing mistake. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  if (word.length > lengthMax) return undefined
  let best: string | undefined
  // A third of the letters may be wrong. Two swapped neighbours count as two wrong letters.
  let distanceMin = Math.max(1, Math.round(word.length / 3)) + 1
  for (const candidate of known) {
    const edits = isTruncated(word, candidate) ? 1 : distance(word.toLowerCase(), candidate.toLowerCase())
    if (edits < distanceMin) {
      distanceMin = edits
      best = candidate
    }
  }
  return best
}

/** `max` for `max_bytes`, and `bytes` for `max_bytes`. */
function isTruncated(word: string, candidate: string): boolean {
  return word.length >= 3 && (candidate.startsWith(`${word}_`) || candidate.endsWith(`_${word}`))
}
