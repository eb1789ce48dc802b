// explain.ts: a mapper that reports for each message where every value of its payloads came from, and why a
// value is missing. The entry file of the folder. It is slow and meant for a person who works on a mapping;
// the daemon does not use it.
//
// It is the mapper of the daemon, over a plan whose fields note what they read (fields/field-notes.ts); it
// hands out each reading (read/reading.ts). Nothing is compiled or decided here.

import type { EpochMs } from '../../std/clock.ts'
import type { Message } from '../../domain/message.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import type { SourcePlan } from '../compile/source-plan.ts'
import type { MappingConfig, SourceConfig } from '../config.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import type { DeviceRow } from '../devices/device-table.ts'
import type { ConditionParts } from '../expression/condition-parts.ts'
import { digestOf, payloadIdOf } from '../identity.ts'
import { createMapper, type MapperDeps, type MapperOptions } from '../mapper.ts'
import { propertyReadBy, unreadProperties } from '../path/packet-properties.ts'
import { isRecord } from '../path/path-eval.ts'
import { previousValuesOf } from '../path/path.ts'
import { findUnread, keysMax, stepText, type UnreadKeys } from '../path/unread-keys.ts'
import { withPlausibility } from '../plausibility/plausibility.ts'
import { deviceNameIn } from '../read/read.ts'
import type { Reading } from '../read/reading.ts'
import type { Route } from '../routing/routing.ts'
import { zoneOf, type Zone } from '../times/zones.ts'
import type { MapResult, Place, StateChanges } from '../types.ts'
import { nameOf } from '../write.ts'
import { explainFields, scratch, type ExplainedField } from './explain-fields.ts'
import { notAnObject } from '../read/map-result.ts'
import { selectRecords } from '../path/record-selection.ts'
import { rootOf, type OnDeclined } from '../routing/source-choice.ts'

export type { ExplainedField }

type ExplainedDevice = {
  /** Null when nothing names it. */
  name: string | null
  /** What named it: `{device} of the topic`, `path imei`. */
  from: string
  /** Whether the device table has it. */
  listed: boolean
  family: string | null
  /** The model that the family was looked up with; null where none is known. */
  model: string | null
  /** Values of the source depend on the model. */
  hasFamilies: boolean
}

type ExplainedCondition = {
  option: string
  text: string
  holds: boolean
  /** Where it is false: the parts that do not hold. */
  parts: ConditionParts | null
}

type ExplainedRecord = {
  device: ExplainedDevice
  conditions: readonly ExplainedCondition[]
  /** The keys of `extract`, whether a value was unpacked, and those of other controllers of a bus. */
  unpacked: readonly { into: string; found: boolean; ignored: readonly string[] }[]
  /** What paths with `$previous` found, and when it was sent. */
  previous: readonly { path: string; value: unknown; time: EpochMs }[]
  fields: readonly ExplainedField[]
  /** Null when the record has no payload, or none yet. */
  payloadId: string | null
}

type ExplainedValue = { source: string; name: string; wanted: boolean; value: unknown }

export type Explained = {
  /** Null for collected records that closed. */
  topic: string | null
  captures: Readonly<Record<string, string>>
  /** Single values of a source that collects. */
  values: readonly ExplainedValue[]
  /** In the order in which they were asked. */
  declined: readonly DeclinedSource[]
  records: readonly ExplainedRecord[]
  /** What is doubtful of the body, in words; null where nothing is. */
  body: string | null
  /** The keys of the message that nothing reads; null where it cannot be said. */
  unread: UnreadKeys | null
}

export type Explainer = ReturnType<typeof createExplainer>

type SourceExplainer = {
  config: SourceConfig
  source: SourcePlan
}

/** A reading, and what explains its source. */
type Read = { reading: Reading; own: SourceExplainer }

export function createExplainer(deps: MapperDeps, options: MapperOptions, config: MappingConfig) {
  const { devices } = deps
  let readings: Read[] = []
  const explainers = new Map<string, SourceExplainer>()
  const declined = createDeclinedSources((name) => explainers.get(name)?.config ?? null)
  const mapper = createMapper(deps, {
    ...options,
    onDeclined: declined.note,
    onReading: (reading, { name }) => void readings.push({ reading, own: explainers.get(name)! }),
  })
  const written = new Map(withPlausibility(config).map((one) => [one.name, one]))
  for (const source of options.sources) {
    explainers.set(source.name, { config: written.get(source.name)!, source })
  }
  return { mapper, explain, explainApplied }

  /** Explains the last message of the mapper; once, right after it. */
  function explain(message: Message, result: MapResult): Explained {
    const all = takeReadings()
    const values = all.flatMap(valueIn)
    const found = all.filter(isJudged)
    const route = mapper.routeOf(message, result.source)
    const records = found.map((read) => explainReading(read, read.reading.payload, message, route))
    const own = route === null ? undefined : explainers.get(route.runtime.source.name)
    const places = found.map(({ reading }) => reading)
    const unread = own === undefined ? null : unreadOfMessage(own, message, route?.captures ?? [], places)
    return {
      topic: message.topic,
      captures: namesOf(own?.source.captures ?? [], route?.captures ?? []),
      values,
      declined: declined.take(),
      records,
      body: all[0]?.reading.at.flagged?.replace('|', ': ') ?? null,
      unread: unread && nearMissing(unread, records),
    }
  }

  /** Explains the records that the last apply() or tick() closed. */
  function explainApplied({ payloads }: StateChanges): Explained {
    const found = takeReadings().filter(isJudged)
    const records = found.map((read) => explainReading(read, payloadAmong(payloads, read), null))
    const unread = found.map(({ reading, own }) => unreadOfCollected(own.source, reading))
    const first = unread.find((one) => one !== null && one.keys.length > 0) ?? null
    return {
      topic: null,
      captures: {},
      values: [],
      declined: [],
      records,
      body: null,
      unread: first && nearMissing(first, records),
    }
  }

  function takeReadings(): Read[] {
    const taken = readings
    readings = []
    return taken
  }

  function explainReading(
    { reading, own }: Read,
    payload: MappedPayload | null,
    message: Message | null,
    route: Route | null = null,
  ): ExplainedRecord {
    const { config: written, source } = own
    const { record } = reading
    if (source.notes !== null && reading.notes !== null) source.notes.record = reading.notes
    const entry = reading.entry ?? entryOf(route, reading)
    const name = entry?.device ?? payload?.device ?? null
    const row = name === null ? undefined : devices.find(name)
    const families = Object.keys(written.families)
    const family = families[(entry?.family ?? 0) - 1] ?? null
    const { defaults } = source.deviceOptions
    const zone = zoneNamed(row?.zone ?? defaults.zone)
    const more = { arrivedAt: message?.arrivedAt ?? null, profile: row?.privacy ?? null }
    const place = { reading, family, payload, zone, ...more }
    return {
      device: {
        name,
        from: message === null ? 'the collected values' : fromOf(own, reading, message),
        listed: row !== undefined,
        family,
        model: modelOf(row, source),
        hasFamilies: families.length > 0,
      },
      conditions: conditionsOf(own, reading),
      unpacked: unpackedIn(written, reading),
      previous: [...(previousValuesOf(record) ?? [])].map(([path, one]) => ({ path, ...one })),
      fields: explainFields(written, source, place),
      payloadId: payload?.payloadId ?? null,
    }
  }
}

/** The device of a record that was rejected before it was asked for its device. */
function entryOf(route: Route | null, reading: Reading): DeviceEntry | null {
  if (route === null || route.entry !== null) return route?.entry ?? null
  const { source, devices } = route.runtime
  const name = deviceNameIn(source, scratch(reading))
  return name === null ? null : devices.entryOf(name, route.provider)
}

/** A message of a source that collects is a value, and no record yet. */
function isJudged({ reading, own }: Read): boolean {
  if (!isRecord(reading.record) || (own.source.coalesce !== null && reading.at.message !== null)) return false
  return reading.entry !== null || reading.isWanted !== null || own.source.refuse.length > 0
}

function valueIn({ reading, own: { source } }: Read): ExplainedValue[] {
  const { at, entry } = reading
  if (source.coalesce === null || at.message === null || entry === null) return []
  const name = source.coalesce.name(reading)
  const wanted = source.coalesce.names.has(name)
  return [
    {
      source: source.name,
      name,
      wanted,
      value: wanted ? source.coalesce.value(reading) : undefined,
    },
  ]
}

/** The payload of a record that closed. */
function payloadAmong(payloads: readonly MappedPayload[], { reading, own }: Read): MappedPayload | null {
  const { entry } = reading
  if (entry === null || !reading.isRead) return null
  const id = payloadIdOf(digestOf(nameOf({ entry, mapped: reading.mapped(own.source.name, entry) })))
  return payloads.find(({ payloadId }) => payloadId === id) ?? null
}

function modelOf(row: DeviceRow | undefined, { deviceOptions }: SourcePlan): string | null {
  return row?.model ?? deviceOptions.defaults.model ?? null
}

function zoneNamed(name: string | undefined): Zone | null {
  return name === undefined ? null : zoneOf(name)
}

function namesOf(names: readonly string[], captures: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name, index) => [name, captures[index] ?? '']))
}

function conditionsOf(
  { config: { refuse, when, fix }, source }: SourceExplainer,
  reading: Reading,
): ExplainedCondition[] {
  const conditions: ExplainedCondition[] = []
  const add = (option: string, text: string, holds: boolean) => {
    const judge = holds ? undefined : source.notes?.conditions.get(text)
    conditions.push({ option, text, holds, parts: judge?.(reading) ?? null })
  }
  const rule = refuse.find(({ reason }) => reason === reading.refusedBy)
  if (rule) add('refuse', rule.when, true)
  if (when !== undefined && reading.isWanted !== null) add('when', when, reading.isWanted)
  if (fix?.valid !== undefined && reading.isValid !== null) add('fix.valid', fix.valid, reading.isValid)
  return conditions
}

function unpackedIn({ extract }: SourceConfig, { root, record, at }: Reading): ExplainedRecord['unpacked'] {
  const extended = Array.isArray(root) ? record : root
  const keys = [...new Set(extract.map(({ into }) => into))]
  return keys.map((into) => ({
    into,
    found: isRecord(extended) && Object.hasOwn(extended, into),
    ignored: (at.others ?? [])
      .filter((one) => one.into === into)
      .map(({ signal, why }) => `${signal} ${why}`),
  }))
}

/** Which rule named the device. */
function fromOf({ config, source }: SourceExplainer, reading: Reading, message: Message): string {
  const rules = [config.device ?? '{device}'].flat()
  for (const [index, rule] of rules.entries()) {
    if (typeof rule !== 'string') {
      const { path, raw } = source.notes?.fields.get(`device.${index}`)?.found ?? {}
      if (path === undefined || path === null || raw === undefined) continue
      return 'expr' in rule ? `expression ${path}` : (propertyReadBy(path) ?? `path ${path}`)
    }
    const template = source.deviceRules[index]!
    if (template.kind === 'record') continue
    if (template.name(reading.captures, message) !== '') return `${rule} of the ${template.kind}`
  }
  const tried = rules.map((rule) => {
    if (typeof rule === 'string') return rule
    return 'expr' in rule ? `expression ${rule.expr}` : `path ${[rule.path].flat().join(', ')}`
  })
  return `nothing: ${tried.join('; ')}`
}

// Why sources that have the topic of a message did not take it.

/** A source that has the topic and did not take the message. */
type DeclinedSource = {
  source: string
  records: number
  /** Why it cannot read the message; null where it can. */
  unread: string | null
  /** Its `when`. */
  text: string
  /** The parts of it that do not hold for the first record; null where the message has no records. */
  parts: ConditionParts | null
}

function createDeclinedSources(configOf: (source: string) => SourceConfig | null) {
  let noted: DeclinedSource[] = []
  return { note, take }

  function note(...[{ runtime, captures }, decoded, message]: Parameters<OnDeclined>): void {
    const { source } = runtime
    const text = configOf(source.name)?.when ?? ''
    const declined = { source: source.name, records: 0, unread: null, text, parts: null }
    if (decoded.kind !== 'value') {
      const unread = decoded.kind === 'refused' ? decoded.detail : 'It is empty.'
      noted.push({ ...declined, unread })
      return
    }
    const root = rootOf(source, captures, decoded.value, message)
    const { records } = selectRecords(source.each, root, captures, source.recordsMax)
    const other = records.find(({ record }) => !isRecord(record))
    const first = records.find(({ record }) => isRecord(record))
    noted.push({
      ...declined,
      records: records.length,
      unread: other === undefined ? null : notAnObject(source, other.record),
      parts: (first && source.notes?.conditions.get(text)?.(first)) ?? null,
    })
  }

  /** Those of the last message, in the order in which they were asked. */
  function take(): readonly DeclinedSource[] {
    const taken = noted
    noted = []
    return taken
  }
}

// The keys of one message that no path of its source reads, by the reads of its plan.
//
// A message of a source that collects is judged by what reads its name, value and time; what was collected,
// by the paths that read the names. The user properties of MQTT 5 that nothing reads stand behind the keys.

/** Values of a message that are looked at. No further record can be among them. */
const limits = { visitsMax: 5000 }

/** Null for bytes that cannot be decoded. */
function unreadOfMessage(
  { config, source }: { config: SourceConfig; source: SourcePlan },
  message: Message,
  captures: readonly string[],
  traces: readonly Place[],
): UnreadKeys | null {
  const keys = keysOf(source, message, captures, traces)
  return keys && withProperties(keys, unreadProperties(config, message))
}

/** Of a record that was collected from several messages. */
function unreadOfCollected(source: SourcePlan, trace: Place): UnreadKeys | null {
  return source.coalesce && findUnread(source.reads().record, trace.root, [trace], limits)
}

function keysOf(
  source: SourcePlan,
  { bytes }: Message,
  captures: readonly string[],
  traces: readonly Place[],
): UnreadKeys | null {
  const { record, part } = source.reads()
  const { decode } = source.encoding
  const find = (root: unknown, places: readonly Place[]) => findUnread(part ?? record, root, places, limits)
  // A decoder with memory is asked once for each message, by the mapper.
  if (!decode) return traces[0] ? find(traces[0].root, traces) : null
  const decoded = decode(bytes)
  if (decoded.kind !== 'value') return null
  const root = source.extract === null ? decoded.value : source.extract(decoded.value, { captures })
  const { records } = selectRecords(source.each, root, captures, limits.visitsMax)
  return find(root, records.slice(0, limits.visitsMax))
}

function withProperties(unread: UnreadKeys, names: readonly string[]): UnreadKeys {
  if (names.length === 0) return unread
  const shown = names.slice(0, keysMax).map((name) => `$properties.${stepText(name)}`)
  const more = unread.more + names.length - shown.length
  return { ...unread, keys: [...unread.keys, ...shown], more }
}

type RecordResult = { device: { name: string | null }; fields: readonly ExplainedField[] }

/** Without the fields that every record has. */
function nearMissing(unread: UnreadKeys, records: readonly RecordResult[]): UnreadKeys {
  const near = unread.near.filter((field) => records.length === 0 || records.some((one) => lacks(one, field)))
  return { ...unread, near }
}

const signalTypes: Readonly<Record<string, string>> = {
  odometer: 'OBD_LIFETIME_ODOMETER',
  'engine hours': 'OBD_TOTAL_ENGINE_TIME',
}

function lacks({ device, fields }: RecordResult, name: string): boolean {
  if (name === 'device') return device.name === null
  const type = signalTypes[name]
  return !fields.some(
    ({ option, field, value }) =>
      value !== undefined && (type === undefined ? option === name : field.startsWith(type)),
  )
}
