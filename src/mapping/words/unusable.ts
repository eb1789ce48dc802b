// unusable.ts: what a word makes of a value that it cannot compute with. It is neither a number, nor true or
// false, nor a text, so every field omits it and counts it.

export const unusable: unknown = Object.freeze({ unusable: true })
