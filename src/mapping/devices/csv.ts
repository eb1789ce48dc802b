// csv.ts: the rows of a CSV file (RFC 4180) with their places in the text. Beyond the RFC it accepts a byte
// order mark, LF line ends, comment lines that start with `#`, empty lines, and blanks around a field.
//
// A malformed row is a problem with a line number, never a guess. The rows behind it are read, so that one
// run finds all problems; behind a quote that is never closed nothing is known.

/** The row is the text from `start` to `end`, without its line end. */
export type CsvRow = { line: number; fields: readonly string[]; start: number; end: number }

export type CsvProblem = { line: number; message: string }

export type Csv = { rows: readonly CsvRow[]; problems: readonly CsvProblem[] }

/** Malformed rows after which reading stops. */
const malformedMax = 1000

/** A field in quotes or without, and the blanks around it. */
const field = /[ \t]*(?:"([^"]*(?:""[^"]*)*)"[ \t\r]*|([^",\n]*))(?=[,\n]|$)/y
const openQuote = /[ \t]*"/y
const closedQuotes = /[ \t]*"[^"]*(?:""[^"]*)*"(?!")/y
/** Lines that are no rows. */
const skipped = /(?:[ \t]*#[^\n]*|[ \t\r]*)(?:\n|$)/y

export function parseCsv(text: string): Csv {
  const rows: CsvRow[] = []
  const problems: CsvProblem[] = []
  const lineAt = lineCounter(text)
  let at = text.startsWith('\ufeff') ? 1 : 0
  while (at < text.length && problems.length < malformedMax) {
    const end = endOf(skipped, text, at)
    if (end !== -1) {
      at = end
      continue
    }
    const { fields, stop, fault } = rowAt(text, at)
    if (fault === null) {
      const last = text[stop - 1] === '\r' ? stop - 1 : stop
      rows.push({ line: lineAt(at), fields, start: at, end: last })
    } else {
      problems.push({ line: lineAt(fault === neverClosed ? at : stop), message: fault })
    }
    const next = fault === neverClosed ? -1 : text.indexOf('\n', stop)
    at = next === -1 ? text.length : next + 1
  }
  return { rows, problems }
}

const neverClosed = 'has a quote that is never closed'

/** `stop`: the place of the line end, or of the fault. */
function rowAt(text: string, start: number): { fields: string[]; stop: number; fault: string | null } {
  const fields: string[] = []
  for (let at = start; ; at = field.lastIndex + 1) {
    field.lastIndex = at
    const found = field.exec(text)
    if (found === null) return { fields, ...faultAt(text, at) }
    const [, quoted, plain = ''] = found
    fields.push(quoted?.replaceAll('""', '"').replaceAll('\r\n', '\n') ?? plain.trim())
    if (text[field.lastIndex] !== ',') return { fields, stop: field.lastIndex, fault: null }
  }
}

function faultAt(text: string, at: number): { stop: number; fault: string } {
  if (endOf(openQuote, text, at) === -1)
    return { stop: at, fault: 'has a quote inside a field that does not start with one' }
  const closed = endOf(closedQuotes, text, at)
  return closed === -1
    ? { stop: at, fault: neverClosed }
    : { stop: closed, fault: 'has text behind a closing quote' }
}

/** The end of what a pattern finds at a place; -1 where it finds nothing. */
function endOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : -1
}

/** The number of the line of a place, for places in ascending order. */
function lineCounter(text: string): (place: number) => number {
  let line = 1
  let next = text.indexOf('\n')
  return (place) => {
    for (; next !== -1 && next < place; next = text.indexOf('\n', next + 1)) line += 1
    return line
  }
}
