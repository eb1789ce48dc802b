// privacy.ts: applies the privacy profile of an asset to its payloads. The entry file of the folder.
//
//   round     coordinates with this many decimals, rounded as decimals: 48.85661 to 48.857, never 48.8569999.
//             A signal with the name of a coordinate or place is withheld: it would be exact
//   hide      speed (with heading and motion), odometer (every distance), hours (every duration): by the
//             quantity of a signal, whatever its unit is, and by the words of its type and unit
//   outside   of the working hours (schedule.ts): `drop` sends nothing; `coarse` sends what US law allows for
//             personal use (49 CFR 395.26(d)(2)): the position with one decimal, and nothing else
//
// A profile that rounds or hides anything also withholds the extra fields of a source (`fields`): their
// meaning is not known here, and data sent by mistake cannot be recalled.
//
// It works on the written parts of a payload, after its payloadId was made: a change of the profile does not
// make new payloads of known ones. Only assets with a profile are handled here, so parsing the position again
// costs little.

import type { EpochMs } from '../../std/clock.ts'
import { quantityOf, unitOf, wordsOf, type Quantity } from '../plausibility/quantities.ts'
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

type Rule = { round: number | null; hide: readonly Withheld[] }

/** By type: what the sources of the config say that such a signal measures. */
type NamedQuantities = ReadonlyMap<string, readonly Quantity[]>

const coarsePlaces = 1

/** `words`: of a signal of which perhaps neither the config nor a known unit says what it measures. */
const hidden: Readonly<Record<Withheld, { quantities: readonly Quantity[]; words: RegExp }>> = {
  speed: {
    quantities: ['speed', 'heading'],
    words:
      /SPEED|VELOCITY|HEADING|COURSE|BEARING|DIRECTION|MOTION|MOV(?:E|ING)|GESCHWINDIGKEIT|\b(?:KM ?H|KPH|MPH|KNOTS?|SOG|COG|VEL|SPD|AZIMUTH)\b/,
  },
  odometer: {
    quantities: ['odometer', 'distance'],
    words:
      /ODO|MILEAGE|DISTANCE|KILOMET|MILES|LAUFLEISTUNG|STRECKE|MEILEN|\b(?:TRIP|RANGE|DIST|KM(?! H\b)|HM|METERS?|METRES?|FEET|FT|MI)\b/,
  },
  hours: {
    quantities: ['engine_hours', 'duration'],
    words:
      /HOUR|(?<!LIFE)TIME|DURATION|MINUTES|SECONDS|DRIVING|STUNDEN|MINUTEN|\b(?:HRS?|STD|MINS|SECS?|MS|DAYS)\b/,
  },
}

const placeWords = /LATITUDE|LONGITUDE|LOCATION|COORDINATE|GEOHASH|\b(?:LAT|LON|LNG)\b/

/** The fields of a position in the API (ingestion-api.md 2.4): coordinates, and those that `speed` hides. */
const coordinateFields = ['latitude', 'longitude']
const speedFields = ['speed', 'speedUnits', 'heading', 'inMotion']

export function compilePrivacy(profile: PrivacyProfile, named: NamedQuantities = new Map()): Withhold {
  const { round, hide } = profile
  const outsideRound = Math.min(round ?? coarsePlaces, coarsePlaces)
  const insideIsPlain = round === null && hide.length === 0
  const isPrivateAt = (moment: EpochMs) => profile.hours !== null && !profile.hours(moment)
  const withhold = (parts: WrittenParts, moment: EpochMs) => {
    if (!isPrivateAt(moment)) return insideIsPlain ? parts : withheld(parts, { round, hide }, named)
    return profile.outside === 'drop' ? null : coarse(parts, outsideRound)
  }
  return Object.assign(withhold, { isPrivateAt })
}

function coarse({ gps }: WrittenParts, round: number): WrittenParts | null {
  return gps === '' ? null : { gps: withheldGps(gps, { round, hide: ['speed'] }), signals: [], fields: '' }
}

function withheld({ gps, signals }: WrittenParts, rule: Rule, named: NamedQuantities): WrittenParts | null {
  const kept = signals.filter((signal) => !isHidden(signal, rule, named))
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
  if (!hide.includes('speed')) for (const name of speedFields) if (name in before) after[name] = before[name]
  return `,"gps":${JSON.stringify(after)}`
}

function isHidden(signal: string, { round, hide }: Rule, named: NamedQuantities): boolean {
  const { type, valueUnit } = JSON.parse(`{"id":"${signal}`) as { type: string; valueUnit?: string }
  const unit = unitOf(valueUnit)
  const byName = quantityOf(type, unit)
  const ofName = wordsOf(unit === undefined ? `${type} ${valueUnit ?? ''}` : type).join(' ')
  const measured = [...(named.get(type) ?? []), ...(byName === null ? [] : [byName])]
  if (round !== null && placeWords.test(ofName)) return true
  return hide.some((what) => {
    const { quantities, words } = hidden[what]
    return measured.some((quantity) => quantities.includes(quantity)) || words.test(ofName)
  })
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
