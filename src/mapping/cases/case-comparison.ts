// case-comparison.ts: compares the result of a case with its expectation, and lists the differences in
// sentences.

import { isDeepStrictEqual } from 'node:util'
import type { EpochMs } from '../../std/clock.ts'
import { bounded, visible } from '../../std/quote.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import { isRecord, valueAt } from '../path/path-eval.ts'

type Reason = { reason: string; detail: string }

/** The results of the messages of a case. */
export type ActualResult = {
  payloads: MappedPayload[]
  ignored: string[]
  refused: Reason[]
  quarantined: Reason[]
  /** When the messages arrived. */
  arrivals: readonly EpochMs[]
  isSequence: boolean
}

export type ExpectedPayload = {
  device: string
  time: EpochMs | 'arrival'
  gps?: Readonly<Record<string, unknown>> | undefined
  signals: readonly unknown[]
  fields: Readonly<Record<string, unknown>>
}

export type Expected = {
  payloads?: readonly ExpectedPayload[] | undefined
  ignored?: string | undefined
  refused?: string | undefined
  quarantined?: string | undefined
}

type Body = Readonly<Record<string, unknown>>

const valueLengthMax = 400

/** One sentence per difference; none when the result is as expected. */
export function compareCase(expected: Expected, actual: ActualResult): string[] {
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
