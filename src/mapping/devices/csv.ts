// csv.ts: the rows of a CSV file (RFC 4180) with their line numbers, read by csv-parse. Beyond the RFC it
// accepts a byte order mark, LF line ends, comment lines that start with `#`, empty lines, and blanks around
// a field.
//
// A malformed row is a problem with a line number, never a guess. csv-parse stops at the first one and is
// started again on the next line, so that one run finds all problems.

import { CsvError, parse, type Info } from 'csv-parse/sync'

export type CsvRow = { line: number; fields: readonly string[] }

export type CsvProblem = { line: number; message: string }

export type Csv = { rows: readonly CsvRow[]; problems: readonly CsvProblem[] }

const messages: Readonly<Partial<Record<CsvError['code'], string>>> = {
  INVALID_OPENING_QUOTE: 'has a quote inside a field that does not start with one',
  CSV_INVALID_CLOSING_QUOTE: 'has text behind a closing quote',
  CSV_NON_TRIMABLE_CHAR_AFTER_CLOSING_QUOTE: 'has text behind a closing quote',
  CSV_QUOTE_NOT_CLOSED: 'has a quote that is never closed',
}

/** Malformed rows after which reading stops: each restarts csv-parse, which takes some 50 microseconds. */
const malformedMax = 1000

export function parseCsv(text: string): Csv {
  // csv-parse counts the CR and the LF inside a quoted field as two lines.
  const bytes = Buffer.from(text.replaceAll('\r\n', '\n'))
  const rows: CsvRow[] = []
  const problems: CsvProblem[] = []
  let start = 0
  let linesBefore = 0
  while (start < bytes.length && problems.length < malformedMax) {
    const problem = parseFrom(bytes.subarray(start), linesBefore, rows)
    if (problem === null) break
    problems.push({ line: problem.line, message: problem.message })
    for (; linesBefore < problem.lastLine; linesBefore += 1) {
      const end = bytes.indexOf(0x0a, start)
      start = end === -1 ? bytes.length : end + 1
    }
  }
  return { rows, problems }
}

/**
 * Adds the rows up to the first problem. `lastLine` is where csv-parse stopped. `line` is the same, except
 * for a quote that is never closed: there it is the start of the row.
 */
function parseFrom(
  bytes: Buffer,
  linesBefore: number,
  rows: CsvRow[],
): (CsvProblem & { lastLine: number }) | null {
  let last: Lines = { lines: linesBefore, skipped: 0 }
  try {
    parse(bytes, {
      bom: true,
      comment: '#',
      comment_no_infix: true,
      record_delimiter: '\n',
      relax_column_count: true,
      skip_empty_lines: true,
      trim: true,
      on_record(fields: string[], info) {
        const read = linesOf(info, linesBefore)
        rows.push({ line: startAfter(last, read), fields })
        last = read
        return null
      },
    })
    return null
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    const found = linesOf(countersOf(error), linesBefore)
    const line = error.code === 'CSV_QUOTE_NOT_CLOSED' ? startAfter(last, found) : found.lines
    return { line, lastLine: found.lines, message: messages[error.code] ?? error.message }
  }
}

/** The last line that was read, and how many comments and empty lines were skipped. */
type Lines = { lines: number; skipped: number }

type Counters = Pick<Info, 'lines' | 'comment_lines' | 'empty_lines'>

/** The error has the counters of the parser; its type does not list them. */
function countersOf(error: CsvError): Counters {
  const [lines, comments, empty] = ['lines', 'comment_lines', 'empty_lines'].map((name) =>
    Number(error[name]),
  )
  return { lines: lines ?? 0, comment_lines: comments ?? 0, empty_lines: empty ?? 0 }
}

function linesOf(
  { lines, comment_lines: comments, empty_lines: empty }: Counters,
  linesBefore: number,
): Lines {
  return { lines: linesBefore + lines, skipped: comments + empty }
}

/** The first line of a row: after the last row and what was skipped since. */
function startAfter(last: Lines, now: Lines): number {
  return last.lines + now.skipped - last.skipped + 1
}
