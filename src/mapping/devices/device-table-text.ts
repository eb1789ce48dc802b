// device-table-text.ts: adds and replaces rows in the text of a device table. All else stays as a person
// wrote it: comments, the order of rows and columns, quotes, line ends. A column that is missing is added
// behind the others.

import { deviceColumns, parseDevices } from './device-table.ts'
import { parseCsv, type CsvRow } from './csv.ts'

/** The fields of a row; '' and a missing field are the same. */
export type DeviceFields = Readonly<Partial<Record<(typeof deviceColumns)[number], string>>> & {
  readonly device: string
}

export type EditedTable =
  /** `text` is the new table. `conflicts`: devices whose row differs and was not replaced. */
  | {
      kind: 'edited'
      text: string
      added: number
      replaced: number
      same: number
      conflicts: readonly string[]
    }
  /** The table has problems already, so it is left as it is. */
  | { kind: 'invalid'; line: number; message: string }

/** `onConflict`: what happens to a device that is in the table with other fields. */
export function editDevices(
  text: string,
  rows: readonly DeviceFields[],
  { onConflict }: { onConflict: 'replace' | 'report' },
): EditedTable {
  const start = text.trim() === '' ? `${text}device\n` : text
  const { rows: parsed, problems } = parseCsv(start)
  const [problem] = problems
  if (problem !== undefined) return { kind: 'invalid', ...problem }
  const [header, ...body] = parsed
  if (header === undefined || !header.fields.includes('device'))
    return { kind: 'invalid', line: header?.line ?? 1, message: 'the table has no column "device"' }
  const missing = deviceColumns.filter(
    (column) => !header.fields.includes(column) && rows.some((row) => (row[column] ?? '') !== ''),
  )
  const columns = [...header.fields, ...missing]
  const rowOf = new Map(body.map((row) => [row.fields[columns.indexOf('device')] ?? '', row]))
  const counts = { added: 0, replaced: 0, same: 0 }
  const conflicts: string[] = []
  const replacements = new Map<CsvRow, string>()
  const additions: string[] = []
  for (const row of rows) {
    const fields = columns.map((column) => row[column as keyof DeviceFields] ?? '')
    const known = rowOf.get(row.device)
    if (known === undefined) {
      additions.push(fields.map(quoted).join(','))
      counts.added += 1
    } else if (fields.every((field, index) => (known.fields[index] ?? '') === field)) {
      counts.same += 1
    } else if (onConflict === 'report') {
      conflicts.push(row.device)
    } else {
      replacements.set(known, fields.map(quoted).join(','))
      counts.replaced += 1
    }
  }
  const written = withRows(start, parsed, (row) => {
    const more = row === header ? missing.map((column) => `,${column}`).join('') : ','.repeat(missing.length)
    return replacements.get(row) ?? start.slice(row.start, row.end) + more
  })
  return { kind: 'edited', text: withLines(written, additions), ...counts, conflicts }
}

/** The rows of a table as fields; the first problem where it has one. */
export function readDeviceFields(
  bytes: Buffer,
  providers: Parameters<typeof parseDevices>[1],
  profiles: Parameters<typeof parseDevices>[2],
): { rows: readonly DeviceFields[] } | { line: number; message: string } {
  const { problems } = parseDevices(bytes, providers, profiles)
  const [problem] = problems
  if (problem !== undefined) return problem
  const [header, ...body] = parseCsv(bytes.toString('utf8')).rows
  const columns = header?.fields ?? []
  return {
    rows: body.map(
      ({ fields }) =>
        Object.fromEntries(columns.map((column, index) => [column, fields[index] ?? ''])) as DeviceFields,
    ),
  }
}

/** The text with each row as `write` gives it; what is between rows stays. */
function withRows(text: string, rows: readonly CsvRow[], write: (row: CsvRow) => string): string {
  let written = ''
  let at = 0
  for (const row of rows) {
    written += text.slice(at, row.start) + write(row)
    at = row.end
  }
  return written + text.slice(at)
}

function withLines(text: string, lines: readonly string[]): string {
  const [lineEnd = '\n'] = /\r?\n/.exec(text) ?? []
  const separated = lines.length === 0 || text.endsWith('\n') ? text : text + lineEnd
  return separated + lines.map((line) => line + lineEnd).join('')
}

/** A row that begins with `#` would be a comment. Blanks around a field are trimmed unless it is quoted. */
function quoted(field: string): string {
  return /[",\r\n#]|^\s|\s$/.test(field) ? `"${field.replaceAll('"', '""')}"` : field
}
