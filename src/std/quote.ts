// quote.ts: foreign text (a topic, an answer of a service, a value in a config file) as it may stand in a
// sentence: quoted, bounded, on one line, and without characters that move a terminal's cursor or hide text.

// Controls, format characters (zero-width and bidirectional marks among them), line and paragraph separators:
// JSON leaves most of them as they are.
const invisible = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** `text` in double quotes, cut after `lengthMax` UTF-16 units. */
export function quote(text: string, lengthMax = 200): string {
  return visible(JSON.stringify(bounded(text, lengthMax)))
}

/** `text` with what cannot be seen, line feeds included, written as `\u{202e}`. */
export function visible(text: string): string {
  return text.replace(invisible, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`)
}

/** `text`, cut after `lengthMax` UTF-16 units with a note of what is missing. */
export function bounded(text: string, lengthMax = 200): string {
  if (text.length <= lengthMax) return text
  return `${text.slice(0, lengthMax)}… (${text.length - lengthMax} more)`
}
