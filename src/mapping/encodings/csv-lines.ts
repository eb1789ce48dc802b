// csv-lines.ts: messages that are lines of fields: { fields: ["402", "51.1"] } for each line that is not
// empty. What is between two fields is never guessed: a number such as 52,5 has a comma in it.
//
// A field in quotes may hold separators, line ends and quotes written twice (RFC 4180), and is not trimmed;
// all others are. A quote that is never closed is a character like any other: trackers send such quotes, and
// the reader of device tables refuses them (../devices/csv.ts).

import { isUtf8 } from 'node:buffer'
import { refused } from '../reasons.ts'
import { recordsMost } from '../path/record-selection.ts'
import type { Decoded } from '../types.ts'
import { plainTextIn } from './plain-text.ts'
import { decodeWithCharset } from '../body/text-charset.ts'

export type Separator = ',' | ';' | '\t'

export function csvDecoder(separator: Separator): (bytes: Buffer) => Decoded {
  return (bytes) => decodeCsv(bytes, separator)
}

function decodeCsv(bytes: Buffer, separator: Separator): Decoded {
  if (!isUtf8(bytes)) return decodeWithCharset(bytes, csvDecoder(separator))
  const text = plainTextIn(bytes)
  const lines: { fields: string[] }[] = []
  const reader = { text, separator, at: 0 }
  while (reader.at < text.length) {
    const fields = takeLine(reader)
    if (fields.length === 1 && fields[0] === '') continue
    if (lines.length === recordsMost)
      return refused('TOO_MANY', `The message has more than ${recordsMost} lines.`)
    lines.push({ fields })
  }
  return lines.length === 0 ? { kind: 'empty' } : { kind: 'value', value: lines }
}

type Reader = { readonly text: string; readonly separator: Separator; at: number }

/** Takes the fields up to the end of the line, and that end. */
function takeLine(reader: Reader): string[] {
  const fields: string[] = []
  for (;;) {
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
  let found = ''
  let start = reader.at + 1
  for (;;) {
    const end = text.indexOf('"', start)
    // All quotes behind an open one are doubled, so one that opens a field closes it at once: the whole text
    // is searched only once.
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
