// json-string.ts: strings as JSON, without JSON.stringify where no character needs escaping.

// Beyond ASCII there may be a lone surrogate, which JSON.stringify escapes and UTF-8 cannot carry.
const plain = /^[ !#-[\]-~]*$/

/** `text` as a JSON string, quotes included. */
export function jsonString(text: string): string {
  return plain.test(text) ? `"${text}"` : JSON.stringify(text)
}
