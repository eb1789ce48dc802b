// privacy.ts: applies the privacy profile of an asset to its payloads. The entry file of the folder.
//
//   round     coordinates with this many decimals, rounded as decimals: 48.85661 to 48.857, never 48.8569999
//   hide      speed (with heading and motion), odometer (every distance counter), hours (every duration
//             counter)
//   outside   of the working hours (schedule.ts): `drop` sends nothing; `coarse` sends what US law allows for
//             personal use (49 CFR 395.26(d)(2)): the position with one decimal, no speed, no odometer, no
//             hours
//
// A profile that rounds or hides anything also withholds the extra fields of a source (`fields`): their
// meaning is not known here, and data sent by mistake cannot be recalled.
//
// It works on the written parts of a payload, after its payloadId was made: a change of the profile does not
// make new payloads of known ones. Only assets with a profile are handled here, so parsing the position again
// costs little.

import type { EpochMs } from '../../std/clock.ts'
import type { Schedule } from './schedule.ts'

export type Withheld = 'speed' | 'odometer' | 'hours'

export type PrivacyProfile = {
  round: number | null
  hide: readonly Withheld[]
  /** Null when all hours are working hours. */
  hours: Schedule | null
  outside: 'drop' | 'coarse'
}

/** The parts of the JSON of a payload, as the mapping writes them. */
export type WrittenParts = {
  /** `,"gps":{...}` or ''. */
  gps: string
  /** Each signal after its id: `","type":"...","value":"..."}`. */
  signals: readonly string[]
  /** Extra fields at the top of the payload, `,"name":...` each, or ''. */
  fields: string
}

export type Withhold = {
  /** The parts that may be sent at `moment`; null when none may. */
  (parts: WrittenParts, moment: EpochMs): WrittenParts | null
  /** Outside of the working hours: what a record of then has is not sent later either. */
  isPrivateAt(moment: EpochMs): boolean
}

type Rule = { round: number | null; hide: ReadonlySet<Withheld> }

const everything: ReadonlySet<Withheld> = new Set(['speed', 'odometer', 'hours'])
const coarsePlaces = 1

/** The fields of a position in the API (ingestion-api.md 2.4): coordinates, and those that `speed` hides. */
const coordinateFields = ['latitude', 'longitude']
const speedFields = ['speed', 'speedUnits', 'heading', 'inMotion']

export function compilePrivacy(profile: PrivacyProfile): Withhold {
  const inside: Rule = { round: profile.round, hide: new Set(profile.hide) }
  const outside: Rule = { round: Math.min(profile.round ?? coarsePlaces, coarsePlaces), hide: everything }
  const insideIsPlain = inside.round === null && inside.hide.size === 0
  const isPrivateAt = (moment: EpochMs) => profile.hours !== null && !profile.hours(moment)
  const withhold = (parts: WrittenParts, moment: EpochMs) => {
    if (!isPrivateAt(moment)) return insideIsPlain ? parts : withheld(parts, inside)
    return profile.outside === 'drop' ? null : withheld(parts, outside)
  }
  return Object.assign(withhold, { isPrivateAt })
}

function withheld({ gps, signals }: WrittenParts, rule: Rule): WrittenParts | null {
  const kept = signals.filter((signal) => !isHidden(signal, rule.hide))
  if (gps === '' && kept.length === 0) return null
  return { gps: gps === '' ? '' : withheldGps(gps, rule), signals: kept, fields: '' }
}

function withheldGps(gps: string, { round, hide }: Rule): string {
  const before = JSON.parse(gps.slice(',"gps":'.length)) as Record<string, unknown>
  const after: Record<string, unknown> = {}
  for (const name of coordinateFields) {
    const value = before[name]
    after[name] = typeof value === 'number' && round !== null ? roundDecimal(value, round) : value
  }
  if (!hide.has('speed')) for (const name of speedFields) if (name in before) after[name] = before[name]
  return `,"gps":${JSON.stringify(after)}`
}

function isHidden(signal: string, hide: ReadonlySet<Withheld>): boolean {
  if (!hide.has('odometer') && !hide.has('hours')) return false
  const { type, valueUnit } = JSON.parse(`{"id":"${signal}`) as { type: string; valueUnit?: string }
  if (hide.has('odometer') && (type.includes('ODOMETER') || valueUnit === 'KILOMETERS')) return true
  return hide.has('hours') && (type.includes('ENGINE_TIME') || valueUnit === 'HOURS')
}

/**
 * A number rounded by its decimal digits, halves away from zero: 1.005 to two places is 1.01, although the
 * nearest double of 1.005 is below it.
 */
export function roundDecimal(value: number, places: number): number {
  const magnitude = Math.abs(value)
  // Below 1e-6 the text of a double has an exponent.
  const [digits, exponent = '0'] = String(magnitude).split('e')
  const steps = Math.round(Number(`${digits}e${Number(exponent) + places}`))
  const rounded = Number(`${steps}e-${places}`)
  return value < 0 && rounded !== 0 ? -rounded : rounded
}
