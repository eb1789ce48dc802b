// device-table.ts: the device table, a CSV file with the asset, operator and carrier of each device.
//
//   device,asset_id,asset_type,operator,carrier,provider,manufacturer,model,privacy,zone,muted_until
//   864636060000001,TRK-0007,TRACTOR,OP1,ACME,,Teltonika,FMC650,night,Europe/Berlin,2026-12-24
//
// `device` is required and unique. Any other column may be missing and any other field empty: the defaults of
// the source and of the config apply then. All bad rows are reported together, with their lines.

import { GatewayError, messageOf } from '../../std/gateway-error.ts'
import { groupedProblems } from '../../std/config-problem.ts'
import { meantText } from '../../std/nearest-word.ts'
import { plural } from '../../std/quantity.ts'
import { NotUtf8Error, utf8Text } from '../../std/file-system/utf8-text.ts'
import { quote } from '../../std/quote.ts'
import { parseDateArgument } from '../../std/time-argument.ts'
import { defaultProvider, type ProviderName } from '../../domain/ids.ts'
import { isRoundedName, trimmedName } from '../path/value.ts'
import { isZoneName, zoneProblem } from '../times/zones.ts'
import { parseCsv, type CsvProblem, type CsvRow } from './csv.ts'

export const deviceColumns = [
  'device',
  'asset_id',
  'asset_type',
  'operator',
  'carrier',
  'provider',
  'manufacturer',
  'model',
  'privacy',
  'zone',
  'muted_until',
] as const

type Column = (typeof deviceColumns)[number]

/** An empty field of the table is absent. */
export type DeviceRow = Readonly<Partial<Record<Exclude<Column, 'device' | 'provider'>, string>>> & {
  readonly provider?: ProviderName
}

export type DeviceTable = {
  find(device: string): DeviceRow | undefined
  readonly size: number
  /** The models in the table, with the number of their devices. */
  models?(): ReadonlyMap<string, number>
}

export type LoadedDevices = DeviceTable & { names(): Iterable<string> }

export type ParsedDevices = { table: LoadedDevices; problems: readonly CsvProblem[] }

/** A larger table is a mistake, and reading it would block the daemon for seconds. */
const bytesMax = 256 * 1024 * 1024

const fieldLengthMax = 256
const linesShown = 50

export const noDevices: LoadedDevices = { find: () => undefined, names: () => [], size: 0 }

export type LoadDevicesDeps = { readFile: (path: string) => Promise<Buffer> }

export type DevicesOptions = {
  path: string
  /** Providers that payloads can be delivered for; another one in a row is a problem. Null: not checked. */
  providers: readonly ProviderName[] | null
  /** Names of the privacy profiles; any other one in a row is a problem. Default: not checked. */
  profiles?: readonly string[] | undefined
}

/** Reads the table; rejects with DEVICES_INVALID and all problems. */
export async function loadDevices(deps: LoadDevicesDeps, options: DevicesOptions): Promise<LoadedDevices> {
  const { path, providers, profiles } = options
  const bytes = await deps.readFile(path).catch((error: unknown) => {
    throw new GatewayError('DEVICES_INVALID', {
      what: `Cannot read the device table ${path}.`,
      why: `${messageOf(error)}.`,
      act: 'Make the file readable for the gateway, or change `devices.file`.',
      cause: error,
    })
  })
  const { table, problems } = parseDevices(bytes, providers, profiles)
  if (problems.length === 0) return table
  throw new DeviceTableError(path, problems)
}

export class DeviceTableError extends GatewayError {
  readonly path: string
  readonly problems: readonly CsvProblem[]

  constructor(path: string, problems: readonly CsvProblem[]) {
    const placed = problems.map(({ line, message }) => {
      return { line, place: `${path}:${line}`, message, rule: message }
    })
    const lines = groupedProblems(placed)
    const more = lines.length > linesShown ? [`... and ${lines.length - linesShown} more`] : []
    super('DEVICES_INVALID', {
      what: `The device table ${path} has ${plural(problems.length, 'problem')}.`,
      why: [...lines.slice(0, linesShown), ...more].join('\n'),
      act: 'Correct these rows. config/reference.md describes the columns at `devices.file`.',
    })
    this.path = path
    this.problems = problems
  }
}

export function parseDevices(
  bytes: Buffer,
  providers: readonly ProviderName[] | null = [defaultProvider],
  profiles?: readonly string[],
): ParsedDevices {
  if (bytes.length > bytesMax) return failed(1, `the table is larger than ${bytesMax} bytes`)
  let text: string
  try {
    text = utf8Text(bytes)
  } catch (error) {
    if (!(error instanceof NotUtf8Error)) throw error
    return failed(error.line, `${error.message} ("CSV UTF-8" in a spreadsheet)`)
  }
  const { rows, problems: malformed } = parseCsv(text)
  const [header, ...body] = rows
  if (!header) return failed(1, 'the table needs a header row with the column "device"', malformed)
  const headerProblems = checkHeader(header)
  if (headerProblems.length > 0) return failedWith([...malformed, ...headerProblems])
  const problems = [...malformed]
  const found = new Map<string, DeviceRow>()
  const lines = new Map<string, number>()
  const badZones = new Map<string, string>()
  const columns = header.fields.map((name) => name as Column)
  for (const row of body) {
    const problem = addRow(row, columns, { found, lines, providers, profiles, badZones })
    if (problem !== undefined) problems.push({ line: row.line, message: problem })
  }
  problems.sort((a, b) => a.line - b.line)
  const models = () => countModels(found.values())
  const names = () => found.keys()
  return { table: { find: (device) => found.get(device), names, size: found.size, models }, problems }
}

function checkHeader({ line, fields }: CsvRow): CsvProblem[] {
  if (fields.length === 1 && fields[0]?.includes(';'))
    return [{ line, message: 'separates its columns with ";"; use commas' }]
  const problems: CsvProblem[] = []
  for (const [index, name] of fields.entries()) {
    if (!deviceColumns.some((known) => known === name))
      problems.push({
        line,
        message: `unknown column ${quote(name, 40)}; known are ${deviceColumns.join(', ')}.${meantText(name, deviceColumns)}`,
      })
    else if (fields.indexOf(name) !== index)
      problems.push({ line, message: `has the column "${name}" twice` })
  }
  if (!fields.includes('device'))
    problems.push({ line, message: 'lacks the column "device"; the first row names the columns' })
  return problems
}

type Collected = {
  found: Map<string, DeviceRow>
  lines: Map<string, number>
  providers: readonly ProviderName[] | null
  profiles: readonly string[] | undefined
  /** What is said of each; a search for the nearest name takes milliseconds. */
  badZones: Map<string, string>
}

function countModels(rows: Iterable<DeviceRow>): Map<string, number> {
  const models = new Map<string, number>()
  for (const { model } of rows) if (model !== undefined) models.set(model, (models.get(model) ?? 0) + 1)
  return models
}

function addRow(
  { line, fields }: CsvRow,
  columns: readonly Column[],
  { found, lines, providers, profiles, badZones }: Collected,
): string | undefined {
  if (fields.length !== columns.length)
    return `has ${plural(fields.length, 'field')}, but the header has ${plural(columns.length, 'column')}`
  const entries: [string, string][] = []
  let device = ''
  for (const [index, value] of fields.entries()) {
    const column = columns[index]
    if (!column || value === '') continue
    if (value.length > fieldLengthMax) return `has more than ${fieldLengthMax} characters in "${column}"`
    if (column === 'device') device = trimmedName(value)
    else entries.push([column, value])
  }
  if (device === '') return 'has no device name'
  if (isRoundedName(device))
    return `names the device ${quote(device, 80)}, a number that a spreadsheet has rounded: format the column as text before you enter it`
  const before = lines.get(device)
  if (before !== undefined) return `repeats the device ${quote(device, 80)} of line ${before}`
  const row: DeviceRow = Object.fromEntries(entries)
  if (row.provider !== undefined && providers?.includes(row.provider) === false)
    return `names the provider ${quote(row.provider, 80)}; known are ${providers.join(', ')}.${meantText(row.provider, providers)}`
  // Without its profile everything of the device would be sent.
  if (row.privacy !== undefined && profiles?.includes(row.privacy) === false)
    return unknownProfile(row.privacy, profiles)
  if (row.zone !== undefined && !isZoneName(row.zone)) return unknownZone(row.zone, badZones)
  if (row.muted_until !== undefined && parseDateArgument(row.muted_until) === null)
    return `has the column "muted_until", which must be a date such as 2026-12-24 or 2026-12-24T18:00Z, found ${quote(row.muted_until, 60)}`
  lines.set(device, line)
  found.set(device, row)
  return undefined
}

function unknownProfile(name: string, profiles: readonly string[]): string {
  const known = profiles.length === 0 ? '`privacy.profiles` has none' : `known are ${profiles.join(', ')}`
  return `names the privacy profile ${quote(name, 80)}; ${known}.${meantText(name, profiles)}`
}

function unknownZone(name: string, known: Map<string, string>): string {
  const problem = known.get(name) ?? `has the column "zone", which ${zoneProblem(name)}`
  if (known.size < linesShown) known.set(name, problem)
  return problem
}

function failed(line: number, message: string, before: readonly CsvProblem[] = []): ParsedDevices {
  return failedWith([...before, { line, message }])
}

function failedWith(problems: readonly CsvProblem[]): ParsedDevices {
  return { table: noDevices, problems }
}
