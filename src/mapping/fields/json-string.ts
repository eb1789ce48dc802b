// json-string.ts: strings as JSON, without JSON.stringify where no character needs escaping.

/** `text` as a JSON string, quotes included. */
export function jsonString(text: string): string {
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at)
    // Beyond ASCII there may be a lone surrogate, which JSON.stringify escapes and UTF-8 cannot carry.
    if (unit < 0x20 || unit > 0x7e || unit === 0x22 || unit === 0x5c) return JSON.stringify(text)
  }
  return `"${text}"`
}
