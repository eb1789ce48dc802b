// cases.ts: tests of a mapping as data: a message and the payload expected of it, or the reason why there is
// none. The entry file of the folder. A file NAME.cases.yaml is in the same folder as the preset or config
// NAME.yaml that it tests.
//
//   devices: { '864636060000001': { model: FMC650 } }     rows of the device table, if needed
//   source: { no_fix: keep }                              for a preset: options of a source that override it
//   cases:
//     - name: a truck on the road
//       topic: fleet/864636060000001/data
//       message: '{"ts":1767085201000,"lat":51.3,"lon":9.4}'
//       payloads:
//         - { device: '864636060000001', time: 1767085201000, gps: { latitude: 51.3, longitude: 9.4 } }
//     - { name: a status, topic: fleet/1/status, message: up, ignored: excluded topic }
//     - { name: no time, topic: fleet/1/data, message: '{"lat":51.3,"lon":9.4}', refused: NO_TIME }
//
// Each case starts with an empty state. A result that the case does not name fails it: another payload, a
// refusal. Only in a sequence of `messages`, ignored ones need not be named. After the last message all open
// records are closed.
//
// Compared are device, time, gps (without what `fields` names), signals (without their ids), and of the extra
// fields those that `fields` names.

import { assert } from '../../std/assert.ts'
import type { EpochMs } from '../../std/clock.ts'
import { defaultProvider, type ProviderName } from '../../domain/ids.ts'
import type { Message } from '../../domain/message.ts'
import { compileSources } from '../compile/compile.ts'
import type { MappingConfig } from '../config.ts'
import { noDevices, type DeviceRow, type DeviceTable } from '../devices/device-table.ts'
import { createMapper, outcomesOf, outcomesOfChanges, type Mapper, type Outcome } from '../mapper.ts'
import type { CasesFile } from './case-schema.ts'
import { isDeepStrictEqual } from 'node:util'
import { bounded, visible } from '../../std/quote.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import { isRecord, valueAt } from '../path/path-eval.ts'

type Case = CasesFile['cases'][number]

export type CaseResult = { name: string; passed: boolean; diff: readonly string[] }

type RunCasesOptions = {
  /** It must compile without problems. */
  mapping: MappingConfig
  /** The device table for devices without a row in the file. */
  devices?: DeviceTable
  providers?: readonly ProviderName[]
  /** The arrival time of messages, unless the case has one. */
  nowMs: EpochMs
}

/** Runs each case with a mapper of its own. */
export function runCases({ cases, devices: rows }: CasesFile, options: RunCasesOptions): CaseResult[] {
  const { mapping, providers = [defaultProvider], nowMs } = options
  const { sources, problems } = compileSources(mapping)
  assert(problems.length === 0, 'the mapping was checked')
  const { future_max: futureMaxMs, on_future: onFuture } = mapping.clocks
  const devices = withRows(rows, options.devices ?? noDevices)
  const open = () =>
    createMapper(
      { devices, clockOffsetMs: () => 0 },
      { sources, providers, clocks: { futureMaxMs, onFuture } },
    )
  return cases.map((one) => {
    const diff = compareCase(one, replayMessages(open(), messagesOf(one, nowMs)))
    return { name: one.name, passed: diff.length === 0, diff }
  })
}

/** Gives messages to a mapper as the intake does, and closes all open records at the end. */
export function replayMessages(mapper: Mapper, messages: readonly Message[]): ActualResult {
  const actual: ActualResult = {
    payloads: [],
    ignored: [],
    refused: [],
    quarantined: [],
    arrivals: messages.map(({ arrivedAt }) => arrivedAt),
    isSequence: messages.length > 1,
  }
  for (const message of messages) {
    tickUntil(mapper, message.arrivedAt, actual)
    addOutcomes(outcomesOf(mapper.map(message)), actual)
  }
  tickUntil(mapper, Number.POSITIVE_INFINITY, actual)
  return actual
}

function tickUntil(mapper: Mapper, untilMs: EpochMs, actual: ActualResult): void {
  for (;;) {
    const at = mapper.nextTickAt()
    if (at === null || at > untilMs) return
    const changes = mapper.tick(Math.max(at, 0))
    if (changes === null) return
    addOutcomes(outcomesOfChanges(changes), actual)
  }
}

function addOutcomes(outcomes: readonly Outcome[], actual: ActualResult): void {
  for (const one of outcomes) {
    if (one.kind === 'payloads') actual.payloads.push(...one.payloads)
    else if (one.kind === 'ignored') actual.ignored.push(one.reason)
    else (one.kind === 'quarantined' ? actual.quarantined : actual.refused).push(one)
  }
}

function messagesOf(one: Case, nowMs: EpochMs): Message[] {
  const sender = {
    clientId: one.client,
    userName: one.user ?? null,
    certificateName: one.certificate ?? null,
    identity: one.identity ?? null,
  }
  let arrivedAt = one.at === undefined ? nowMs : Date.parse(one.at)
  const steps = one.messages ?? [{ ...one, after: 0 }]
  return steps.map(({ topic = '', message, hex, retain, will, dup, after = 0, ...mqtt5 }) => {
    arrivedAt += after
    const bytes = hex === undefined ? Buffer.from(message ?? '') : Buffer.from(hex, 'hex')
    const { user_properties: userProperties = null, content_type: contentType } = mqtt5
    const properties = contentType === undefined ? null : { contentType }
    return { topic, bytes, qos: 1, retain, will, dup, userProperties, properties, sender, arrivedAt }
  })
}

/** The device table with the rows of a cases file, which override those of `table`. */
function withRows(rows: CasesFile['devices'], table: DeviceTable): DeviceTable {
  const own = new Map<string, DeviceRow>(Object.entries(rows) as [string, DeviceRow][])
  return {
    find: (device) => own.get(device) ?? table.find(device),
    size: table.size + [...own.keys()].filter((device) => !table.find(device)).length,
  }
}

// Compares the result of a case with its expectation, and lists the differences in
// sentences.

type Reason = { reason: string; detail: string }

/** The results of the messages of a case. */
type ActualResult = {
  payloads: MappedPayload[]
  ignored: string[]
  refused: Reason[]
  quarantined: Reason[]
  /** When the messages arrived. */
  arrivals: readonly EpochMs[]
  isSequence: boolean
}

type ExpectedPayload = {
  device: string
  time: EpochMs | 'arrival'
  gps?: Readonly<Record<string, unknown>> | undefined
  signals: readonly unknown[]
  fields: Readonly<Record<string, unknown>>
}

type Expected = {
  payloads?: readonly ExpectedPayload[] | undefined
  ignored?: string | undefined
  refused?: string | undefined
  quarantined?: string | undefined
}

type Body = Readonly<Record<string, unknown>>

const valueLengthMax = 400

/** One sentence per difference; none when the result is as expected. */
function compareCase(expected: Expected, actual: ActualResult): string[] {
  return [
    ...comparePayloads(expected.payloads ?? [], actual),
    ...compareIgnored(expected, actual),
    ...compareReasons('refused', expected.refused, actual.refused),
    ...compareReasons('quarantined', expected.quarantined, actual.quarantined),
  ]
}

function comparePayloads(
  expected: readonly ExpectedPayload[],
  { payloads, arrivals }: ActualResult,
): string[] {
  const diff: string[] = []
  for (let index = 0; index < Math.max(expected.length, payloads.length); index += 1) {
    const [wanted, found] = [expected[index], payloads[index]]
    const name = `payload ${index + 1}`
    if (!found) diff.push(`${name} is missing, expected ${shown(wanted)}.`)
    else if (!wanted) diff.push(`${name} is not expected: ${visible(bounded(found.json, valueLengthMax))}`)
    else diff.push(...comparePayload(wanted, found, arrivals).map((line) => `${name}: ${line}`))
  }
  return diff
}

function comparePayload(
  wanted: ExpectedPayload,
  found: MappedPayload,
  arrivals: readonly EpochMs[],
): string[] {
  const body = JSON.parse(found.json) as Body
  const named = Object.keys(wanted.fields)
  const gps = isRecord(body['gps'])
    ? Object.fromEntries(Object.entries(body['gps']).filter(([key]) => !named.includes(`gps.${key}`)))
    : undefined
  return [
    ...differences('device', wanted.device, found.device),
    ...compareTime(wanted.time, found, body['signalTimestamp'], arrivals),
    ...differences('gps', wanted.gps, gps),
    ...differences('signals', wanted.signals, signalsIn(body)),
    ...named.flatMap((name) => differences(name, wanted.fields[name], valueAt(body, name.split('.')))),
  ]
}

function compareTime(
  wanted: ExpectedPayload['time'],
  { deviceTime }: MappedPayload,
  stamp: unknown,
  arrivals: readonly EpochMs[],
): string[] {
  if (wanted !== 'arrival') return differences('time', wanted, stamp)
  if (deviceTime !== null) return [`time is ${deviceTime} from the device, expected the arrival time.`]
  return arrivals.some((at) => at === stamp) ? [] : [`time is ${shown(stamp)}, expected the arrival time.`]
}

function signalsIn(body: Body): unknown[] {
  const signals = Array.isArray(body['signals']) ? body['signals'] : []
  return signals.map((signal: unknown) => {
    if (!isRecord(signal)) return signal
    return Object.fromEntries(Object.entries(signal).filter(([key]) => key !== 'id'))
  })
}

function differences(path: string, wanted: unknown, found: unknown): string[] {
  if (isDeepStrictEqual(wanted, found)) return []
  if (Array.isArray(wanted) && Array.isArray(found)) {
    const length = Math.max(wanted.length, found.length)
    return Array.from({ length }, (_, index) =>
      differences(`${path}[${index}]`, wanted[index], found[index]),
    ).flat()
  }
  if (isRecord(wanted) && isRecord(found)) {
    const keys = [...new Set([...Object.keys(wanted), ...Object.keys(found)])]
    return keys.flatMap((key) => differences(`${path}.${key}`, wanted[key], found[key]))
  }
  if (found === undefined) return [`${path} is missing, expected ${shown(wanted)}.`]
  if (wanted === undefined) return [`${path} is ${shown(found)}, expected none.`]
  return [`${path} is ${shown(found)}, expected ${shown(wanted)}.`]
}

function compareIgnored({ ignored, payloads }: Expected, actual: ActualResult): string[] {
  const found = actual.ignored
  if (ignored !== undefined) {
    if (found.some((reason) => isReason(ignored, reason))) return []
    const was = found.length > 0 ? `was ignored as ${listed(found)}` : 'was not ignored'
    return [`The message ${was}. Expected: ignored as ${shown(ignored)}.`]
  }
  // A sequence of single values usually has some that the source does not use.
  if (found.length === 0 || (actual.isSequence && payloads !== undefined)) return []
  return [`The message was ignored as ${listed(found)}.`]
}

/** `when` stands for any condition, so that a case need not repeat it. */
function isReason(wanted: string, found: string): boolean {
  if (wanted.trim() === 'when') return found.startsWith('when: ')
  return onOneLine(wanted) === onOneLine(found)
}

/** A condition may be folded over several lines. */
function onOneLine(text: string): string {
  return text.trim().replace(/\s+/g, ' ')
}

function compareReasons(kind: string, wanted: string | undefined, found: readonly Reason[]): string[] {
  const unexpected = found
    .filter(({ reason }) => reason !== wanted)
    .map(
      ({ reason, detail }) =>
        `The message was ${kind} as ${reason}: ${visible(bounded(detail, valueLengthMax))}`,
    )
  const missing = wanted !== undefined && !found.some(({ reason }) => reason === wanted)
  return [...(missing ? [`The message was not ${kind}. Expected: ${kind} as ${wanted}.`] : []), ...unexpected]
}

function listed(reasons: readonly string[]): string {
  return [...new Set(reasons)].map(shown).join(', ')
}

function shown(value: unknown): string {
  return visible(bounded(JSON.stringify(value) ?? 'nothing', valueLengthMax))
}
