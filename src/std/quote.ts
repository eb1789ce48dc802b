// quote.ts: makes foreign text (a topic, an answer of the service, a value in a config file) safe to print:
// quoted, bounded, on one line, without characters that move a terminal's cursor or hide text.

// Control characters, format characters (zero-width and bidirectional marks included), line and paragraph
// separators. JSON.stringify leaves most of them unescaped.
const invisible = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** `text` in double quotes, cut after `lengthMax` UTF-16 units. */
export function quote(text: string, lengthMax = 200): string {
  return visible(JSON.stringify(bounded(text, lengthMax)))
}

/** `text` with invisible characters, line feeds included, written as `\u{202e}`. */
export function visible(text: string): string {
  return text.replace(invisible, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`)
}

/** A line of JSON with invisible characters as escapes of JSON: the same value. */
export function visibleJson(line: string): string {
  const end = line.endsWith('\n') ? line.length - 1 : line.length
  return line.slice(0, end).replace(invisible, escapesOf) + line.slice(end)
}

function escapesOf(character: string): string {
  return [...Array(character.length).keys()]
    .map((index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`)
    .join('')
}

/**
 * `items` one after the other, cut between two of them: as many as fit in `lengthMax` UTF-16 units, and at
 * least the first. `total`: how many there are, where these are the first of them.
 */
export function listText(
  items: readonly string[],
  { total = items.length, lengthMax = 200, separator = ', ' } = {},
): string {
  let shown = 0
  let length = 0
  for (const item of items) {
    length += item.length + separator.length
    if (shown > 0 && length > lengthMax) break
    shown += 1
  }
  const more = total > shown ? `${separator}and ${total - shown} more` : ''
  return items.slice(0, shown).join(separator) + more
}

/**
 * `text`, cut after at most `lengthMax` UTF-16 units with the number of missing units. No character is cut in
 * two: half of one is no valid text, and strict readers refuse JSON with it.
 */
export function bounded(text: string, lengthMax = 200): string {
  if (text.length <= lengthMax) return text
  const shown = text.slice(0, lengthMax).replace(/[\uD800-\uDBFF]$/, '')
  return `${shown}… (${text.length - shown.length} more)`
}
