// encodings.ts: messages that are no JSON but text: as it is, as one value, or as lines of fields.
//
//   text     { value: "..." }                  nothing is taken away but a byte order mark and NULs at the end
//   scalar   { value: "..." }                  blanks around it too; { value: null } where nothing is left
//   csv      { fields: ["402", "51.1"] }, ...  one a line that is not empty, separated by commas
//
// A field in quotes may hold commas, line ends and quotes written twice (RFC 4180), and is not trimmed; all others
// are. A quote that is never closed is a character like any other.
//
// The device table is read by csv-parse, messages are not: it takes 17 microseconds for a line of seven fields, this
// decoder 0.4 (measured), and it refuses lines that trackers send, such as one with a lone quote.

import { isUtf8 } from 'node:buffer'
import { notUtf8, type Decode, type Decoded } from './lenient-json.ts'

/** As many lines as a list may have records. */
const linesMax = 1000

export const decodeText: Decode = (bytes) => {
  if (!isUtf8(bytes)) return notUtf8(bytes)
  const value = textIn(bytes)
  return value === '' ? { kind: 'empty' } : { kind: 'value', value: { value } }
}

export const decodeScalar: Decode = (bytes) => {
  if (!isUtf8(bytes)) return notUtf8(bytes)
  const value = textIn(bytes).trim()
  return { kind: 'value', value: { value: value === '' ? null : value } }
}

export const decodeCsv: Decode = (bytes) => {
  if (!isUtf8(bytes)) return notUtf8(bytes)
  const text = textIn(bytes)
  const lines: { fields: string[] }[] = []
  const reader = { text, at: 0 }
  while (reader.at < text.length) {
    const fields = takeLine(reader)
    if (fields.length === 1 && fields[0] === '') continue
    if (lines.length === linesMax) return tooMany
    lines.push({ fields })
  }
  return lines.length === 0 ? { kind: 'empty' } : { kind: 'value', value: lines }
}

const tooMany: Decoded = {
  kind: 'refused',
  reason: 'TOO_MANY',
  detail: `The message has more than ${linesMax} lines.`,
}

function textIn(bytes: Buffer): string {
  let end = bytes.length
  while (end > 0 && bytes[end - 1] === 0) end -= 1
  const start = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0
  return end <= start ? '' : bytes.toString('utf8', start, end)
}

type Reader = { readonly text: string; at: number }

/** The fields up to the line's end, which is taken too. */
function takeLine(reader: Reader): string[] {
  const fields: string[] = []
  for (;;) {
    fields.push(takeField(reader))
    const end = reader.text[reader.at]
    reader.at += 1
    if (end === ',') continue
    if (end === '\r' && reader.text[reader.at] === '\n') reader.at += 1
    return fields
  }
}

/** A field, without the comma or line end behind it. */
function takeField(reader: Reader): string {
  const { text } = reader
  while (text[reader.at] === ' ' || text[reader.at] === '\t') reader.at += 1
  const quoted = text[reader.at] === '"' ? takeQuotes(reader) : ''
  const start = reader.at
  let at = start
  for (; at < text.length; at += 1) {
    const unit = text.charCodeAt(at)
    if (unit === 0x2c || unit === 0x0a || unit === 0x0d) break
  }
  reader.at = at
  return quoted + text.slice(start, at).trim()
}

/** What stands between the quotes; '' and nothing taken where the quote is never closed. */
function takeQuotes(reader: Reader): string {
  const { text } = reader
  let found = ''
  let start = reader.at + 1
  for (;;) {
    const end = text.indexOf('"', start)
    // All quotes behind an open one are doubled, so whichever of them opens a field closes it at once: the whole
    // text is searched in vain one time only.
    if (end === -1) return ''
    found += text.slice(start, end)
    if (text[end + 1] !== '"') {
      reader.at = end + 1
      return found
    }
    found += '"'
    start = end + 2
  }
}
