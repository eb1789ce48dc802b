// digits.ts: decimal digits inside a text.

export function isDigitAt(text: string, at: number): boolean {
  const unit = text.charCodeAt(at)
  return unit >= 0x30 && unit <= 0x39
}

/** The end of the run of digits that starts at `start`. */
export function digitsEnd(text: string, start: number): number {
  let at = start
  while (isDigitAt(text, at)) at += 1
  return at
}
