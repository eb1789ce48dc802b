// csv-lines.ts: messages that are lines of fields: { fields: ["402", "51.1"] } for each line that is not
// empty. What is between two fields is never guessed: a number such as 52,5 has a comma in it.
//
// A field in quotes may hold separators, line ends and quotes written twice (RFC 4180), and is not trimmed;
// all others are. A quote that is never closed is a character like any other: trackers send such quotes, and
// the reader of device tables refuses them (../devices/csv.ts).

import { tooManyValues, usualLimits } from '../body/body-limits.ts'
import type { Decode, Decoded } from '../types.ts'

export type Separator = ',' | ';' | '\t'

export function csvDecoder(separator: Separator): Decode {
  return (bytes, limits) => decodeCsv(bytes, separator, limits)
}

function decodeCsv(bytes: Buffer, separator: Separator, limits = usualLimits): Decoded {
  const text = plainTextIn(bytes)
  const lines: { fields: string[] }[] = []
  const reader = { text, separator, at: 0, left: limits.valuesMax }
  while (reader.at < text.length) {
    const fields = takeLine(reader)
    if (fields === null) return tooManyValues(limits)
    if (fields.length > 1 || fields[0] !== '') lines.push({ fields })
  }
  return lines.length === 0 ? { kind: 'empty' } : { kind: 'value', value: lines }
}

/** `left`: values that may follow. */
type Reader = { readonly text: string; readonly separator: Separator; at: number; left: number }

/** Takes the fields up to the end of the line, and that end. Null where they are too many. */
function takeLine(reader: Reader): string[] | null {
  const fields: string[] = []
  // It is an object and a list.
  reader.left -= 4
  for (;;) {
    if (reader.left <= 0) return null
    reader.left -= 1
    fields.push(takeField(reader))
    const end = reader.text[reader.at]
    reader.at += 1
    if (end === reader.separator) continue
    if (end === '\r' && reader.text[reader.at] === '\n') reader.at += 1
    return fields
  }
}

/** Takes a field, without the separator or line end after it. */
function takeField(reader: Reader): string {
  const { text, separator } = reader
  const separatorUnit = separator.charCodeAt(0)
  const blanks = separator === '\t' ? ' ' : ' \t'
  while (reader.at < text.length && blanks.includes(text[reader.at]!)) reader.at += 1
  const quoted = text[reader.at] === '"' ? takeQuotes(reader) : ''
  const start = reader.at
  let at = start
  for (; at < text.length; at += 1) {
    const unit = text.charCodeAt(at)
    if (unit === separatorUnit || unit === 0x0a || unit === 0x0d) break
  }
  reader.at = at
  return quoted + text.slice(start, at).trim()
}

/** Takes the text in quotes; '' and nothing taken where the quote is never closed. */
function takeQuotes(reader: Reader): string {
  const { text } = reader
  const start = reader.at + 1
  // All quotes behind an open one are doubled, so one that opens a field closes it at once: the whole text is
  // searched only once.
  let end = text.indexOf('"', start)
  while (end !== -1 && text[end + 1] === '"') end = text.indexOf('"', end + 2)
  if (end === -1) return ''
  reader.at = end + 1
  return text.slice(start, end).replaceAll('""', '"')
}

// Messages that are one text.
//
//   text     { value: "..." }   the text, without a byte order mark and NULs at the end
//   scalar   { value: "..." }   also without the blanks around it; { value: null } where nothing is left

export function decodeText(bytes: Buffer): Decoded {
  const value = plainTextIn(bytes)
  return value === '' ? { kind: 'empty' } : { kind: 'value', value: { value } }
}

export function decodeScalar(bytes: Buffer): Decoded {
  const value = plainTextIn(bytes).trim()
  return { kind: 'value', value: { value: value === '' ? null : value } }
}

/** UTF-8 without a byte order mark and the NULs at the end. */
function plainTextIn(bytes: Buffer): string {
  let end = bytes.length
  while (end > 0 && bytes[end - 1] === 0) end -= 1
  const start = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0
  return end <= start ? '' : bytes.toString('utf8', start, end)
}
