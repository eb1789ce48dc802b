// digits.ts: reads decimal digits inside a text.

export function isDigitAt(text: string, at: number): boolean {
  const unit = text.charCodeAt(at)
  return unit >= 0x30 && unit <= 0x39
}

/** The end of the run of digits that starts at `start`. */
export function digitsEnd(text: string, start: number): number {
  let at = start
  // Never reads beyond the end: charCodeAt gives NaN there, and the engine would compare doubles.
  for (; at < text.length; at += 1) {
    const unit = text.charCodeAt(at)
    if (unit < 0x30 || unit > 0x39) break
  }
  return at
}
