// csv.ts: comma-separated values as RFC 4180 has them, read strictly: what is not well formed is a problem
// with a line number, never a guess. Beyond the RFC: a byte order mark, LF line ends, lines that start with
// `#`, empty lines, and blanks around a field that is not quoted.

export type CsvRow = { line: number; fields: readonly string[] }

export type CsvProblem = { line: number; message: string }

export type Csv = { rows: readonly CsvRow[]; problems: readonly CsvProblem[] }

type Reading = { readonly text: string; at: number; line: number; problems: CsvProblem[] }

export function parseCsv(text: string): Csv {
  const reading: Reading = { text, at: text.startsWith('\uFEFF') ? 1 : 0, line: 1, problems: [] }
  const rows: CsvRow[] = []
  while (reading.at < text.length) {
    const line = reading.line
    if (text[reading.at] === '#') {
      skipLine(reading)
      continue
    }
    const fields = takeRow(reading)
    const isEmpty = fields?.length === 1 && fields[0] === ''
    if (fields && !isEmpty) rows.push({ line, fields })
  }
  return { rows, problems: reading.problems }
}

/** The fields up to the end of the row; undefined where the row has a problem and was skipped. */
function takeRow(reading: Reading): string[] | undefined {
  const fields: string[] = []
  for (;;) {
    const field = reading.text[skipBlanks(reading)] === '"' ? takeQuoted(reading) : takePlain(reading)
    if (field === undefined) {
      skipLine(reading)
      return undefined
    }
    fields.push(field)
    if (reading.text[reading.at] !== ',') break
    reading.at += 1
  }
  skipLine(reading)
  return fields
}

function takePlain(reading: Reading): string | undefined {
  const { text, at } = reading
  let end = at
  while (end < text.length && text[end] !== ',' && !isLineEnd(text, end)) {
    if (text[end] === '"') return refuse(reading, 'has a quote inside a field that does not start with one')
    end += 1
  }
  reading.at = end
  return text.slice(at, end).trim()
}

function takeQuoted(reading: Reading): string | undefined {
  const { text, line } = reading
  let field = ''
  let at = reading.at + 1
  for (;;) {
    const quoteAt = text.indexOf('"', at)
    if (quoteAt === -1) {
      reading.at = text.length
      reading.problems.push({ line, message: 'has a quote that is never closed' })
      return undefined
    }
    field += text.slice(at, quoteAt)
    at = quoteAt + 1
    if (text[at] !== '"') break
    field += '"'
    at += 1
  }
  for (const character of field) if (character === '\n') reading.line += 1
  reading.at = at
  const next = skipBlanks(reading)
  if (next < text.length && text[next] !== ',' && !isLineEnd(text, next))
    return refuse(reading, 'has text behind a closing quote')
  return field
}

function refuse(reading: Reading, message: string): undefined {
  reading.problems.push({ line: reading.line, message })
  return undefined
}

function skipBlanks(reading: Reading): number {
  while (reading.text[reading.at] === ' ' || reading.text[reading.at] === '\t') reading.at += 1
  return reading.at
}

function skipLine(reading: Reading): void {
  if (reading.at >= reading.text.length) return
  const end = reading.text.indexOf('\n', reading.at)
  reading.at = end === -1 ? reading.text.length : end + 1
  reading.line += 1
}

/** CR alone ends nothing: it is part of CRLF, or of the field. */
function isLineEnd(text: string, at: number): boolean {
  return text[at] === '\n' || (text[at] === '\r' && text[at + 1] === '\n')
}
