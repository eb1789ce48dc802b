// device-table-text.ts: adds and replaces rows in the text of a device table. All else stays as a person
// wrote it: comments, the order of rows and columns, quotes, line ends. A column that is missing is added
// behind the others.

import { deviceColumns, parseDevices } from './device-table.ts'
import { parseCsv } from './csv.ts'

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
  const columns = [...header.fields]
  const missing = deviceColumns.filter(
    (column) => !columns.includes(column) && rows.some((row) => (row[column] ?? '') !== ''),
  )
  const wide = missing.length === 0 ? start : widened(start, missing)
  columns.push(...missing)
  const lineOf = new Map(body.map(({ line, fields }) => [fields[columns.indexOf('device')] ?? '', line]))
  const fieldsAt = new Map(body.map(({ line, fields }) => [line, fields]))
  const counts = { added: 0, replaced: 0, same: 0 }
  const conflicts: string[] = []
  const replacements = new Map<number, string>()
  const additions: string[] = []
  for (const row of rows) {
    const fields = columns.map((column) => row[column as keyof DeviceFields] ?? '')
    const line = lineOf.get(row.device)
    if (line === undefined) {
      additions.push(fields.map(quoted).join(','))
      counts.added += 1
    } else if (columns.every((_column, index) => (fieldsAt.get(line)?.[index] ?? '') === fields[index])) {
      counts.same += 1
    } else if (onConflict === 'report') {
      conflicts.push(row.device)
    } else {
      replacements.set(line, fields.map(quoted).join(','))
      counts.replaced += 1
    }
  }
  const edited = withRows(wide, replacements, additions)
  return { kind: 'edited', text: edited, ...counts, conflicts }
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

type CsvRecord = { text: string; end: string; line: number }

/** Rows, comments and empty lines with their line ends. A quoted field may have line ends. */
function recordsOf(text: string): CsvRecord[] {
  const records: CsvRecord[] = []
  let start = 0
  let line = 1
  while (start < text.length) {
    const first = line
    let at = start
    let isQuoted = false
    const isComment = text.startsWith('#', start)
    for (; at < text.length; at += 1) {
      const character = text[at]
      if (character === '"' && !isComment) isQuoted = !isQuoted
      if (character === '\n') {
        line += 1
        if (!isQuoted) break
      }
    }
    const hasReturn = text[at - 1] === '\r' && at > start
    const end = hasReturn ? at - 1 : at
    records.push({ text: text.slice(start, end), end: text.slice(end, at + 1), line: first })
    start = at + 1
  }
  return records
}

function isRow({ text }: CsvRecord): boolean {
  return text.trim() !== '' && !text.startsWith('#')
}

function widened(text: string, missing: readonly string[]): string {
  let isHeader = true
  return recordsOf(text)
    .map((record) => {
      if (!isRow(record)) return record.text + record.end
      const more = isHeader ? missing.map((column) => `,${column}`).join('') : ','.repeat(missing.length)
      isHeader = false
      return record.text + more + record.end
    })
    .join('')
}

function withRows(
  text: string,
  replacements: ReadonlyMap<number, string>,
  additions: readonly string[],
): string {
  const records = recordsOf(text)
  const lineEnd = records.find(({ end }) => end !== '')?.end ?? '\n'
  const kept = records.map((record) => (replacements.get(record.line) ?? record.text) + record.end).join('')
  if (additions.length === 0) return kept
  const separated = kept === '' || kept.endsWith('\n') ? kept : kept + lineEnd
  return separated + additions.map((row) => row + lineEnd).join('')
}

/** A row that begins with `#` would be a comment. Blanks around a field are trimmed unless it is quoted. */
function quoted(field: string): string {
  return /[",\r\n#]|^\s|\s$/.test(field) ? `"${field.replaceAll('"', '""')}"` : field
}
