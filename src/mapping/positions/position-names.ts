// position-names.ts: what the keys of decoders mean. Decoders of trackers are written by hundreds of people;
// they use the same words with other cases, separators, prefixes and units: `gpsLatitude`, `Lat`,
// `fix_age_s`.
//
// A name with another prefix means another place: `homeLatitude` is not where the tracker is.

import { createCache } from '../bounded-cache.ts'

/**
 * `set` of a coordinate: coordinates with the same one belong together. `number`: that at the end of the key,
 * as in `latitude1` and `time1`.
 */
export type Role =
  | { kind: 'latitude' | 'longitude'; set: string; number: string }
  /** Minutes or seconds of a coordinate. */
  | { kind: 'part of coordinate' }
  /** The text, list or object of a position: `location`, `gps`. */
  | { kind: 'place' }
  | { kind: 'time' | 'date'; number: string }
  /** The offset of times that are written without one: `timezone: "UTC+02:00"`. */
  | { kind: 'zone' }
  /** The object has the parts of a time: { year, month, day, hour, minute, second, latitude, .. }. */
  | { kind: 'year' | 'part of time' }
  | { kind: 'age'; unitMs: number; number: string }
  /** There is no fix where the value is false or 0, where it is true, or where its text says so. */
  | { kind: 'valid' | 'invalid' | 'count' | 'status' }
  /** As `invalid`, but a number is the length of a timeout. */
  | { kind: 'timed out' }
  /** A number for the kind of fix, of which 0 is none, or a text. */
  | { kind: 'fix type' }
  /** The same inside of a place only: `position.status`. */
  | { kind: 'status of place' }
  /** Says something about the position beside it: `header.timestamp`, `properties`. */
  | { kind: 'about' }
  /**
   * An earlier position: `lastPosition`, `log_coordinates`, or that the one beside it is such a one:
   * `cached_fix: true`.
   */
  | { kind: 'earlier' }
  /** Dilution of precision: receivers without a fix give 99.9 and the like. */
  | { kind: 'dilution' }
  /** The place of something else: a gateway, a geofence. */
  | { kind: 'elsewhere' }
  | { kind: 'other' }

const cacheMax = 4096
const cache = createCache<Role>(cacheMax)
/** Longer keys are nobody's names. */
const lengthMax = 48

const receiver = '(?:gps|gnss|position(?:ing)?|pos|location|loc)'
const coordinate = new RegExp(
  `^(${receiver}|geo|tracker|device|current|cur|coord(?:inate)?s?|point|fix)?` +
    String.raw`(?:(latt?itude|latitud|lati|lat)|(longt?itude|longitud|longi|lng|long|lon))` +
    String.raw`(?:deg|degrees?|dd|dec|decimal|wgs84)?(\d{0,3})$`,
)
/** Minutes and seconds: the degrees beside them are not the whole coordinate. */
const coordinatePart = new RegExp(
  `^(?:${receiver})?(?:latitude|lat|longitude|lng|long|lon)\\d*(?:min(?:utes?)?|m?sec(?:onds?)?|milliseconds?)$`,
)
const timePart = /^(year|month|day|hour|minute|second)(?:utc)?$/
const placeWords =
  `(?:${receiver}(?:data|info|fix|location|position|point|coords?|coordinates?)?|` +
  'coords?|coordinates?|latl(?:ng|on|ong)|l(?:ng|on|ong)lat|geo(?:location|point|json|metry)?|point|' +
  'fix(?:position|location))'
const place = new RegExp(String.raw`^(?:current|cur|device|tracker)?${placeWords}(\d{0,3})$`)
const time = new RegExp(
  `^(?:last)?(?:${receiver}|fix(?:ed)?|utc|measured?|acquired|acquisition|collect(?:ion|ed)?|sample|event|data|` +
    'record(?:ed)?)?(?:fix)?(?:utc)?(?:timestamp|time|datetime|timeutc|at|ts|utc|utctime|unix|epoch|' +
    'unixtime(?:stamp)?)(?:utc|ms|s)?(?:of)?' +
    String.raw`(?:${receiver}|fix)?(\d{0,3})$`,
)
const date = new RegExp(String.raw`^(?:${receiver}|utc|fix)?date(?:utc)?(\d{0,3})$`)
const age = new RegExp(
  `^(?:last)?(?:${receiver}|fix|data|measurement|sample)*(?:age|ageof(?:the)?(?:${receiver}|fix))` +
    String.raw`(?:in)?(ms|msec|millis(?:econds)?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)?` +
    String.raw`(\d{0,3})$`,
)
const since = new RegExp(
  '^(seconds?|secs?|minutes?|mins?|hours?|ms|millis|time)?(?:elapsed)?since(?:last)?(?:gps|gnss)?' +
    '(?:fix|position|location)(ms|s|secs?|seconds?|mins?|minutes?|hours?)?$',
)
const ago = new RegExp(
  `^(?:last)?(?:${receiver}|fix)+(ms|millis|s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?)?ago$`,
)
const prefix = new RegExp(`^(?:${receiver}|fix|has|is|got|from|latl(?:ng|on)|coords?|coordinates?)+`)
const satellites = new RegExp(
  '^(?:gps|gnss)?(?:num(?:ber)?|nb|no|count|n)?(?:of)?(?:gps|gnss)?sat(?:s|ellites?)?' +
    '(?:inuse|used|use|count|cnt|num(?:ber)?|tracked|inview|visible|infix)?$|^(?:num(?:ber)?|n)(?:of)?svs?$',
)
/** Azimuths, elevations and bits of satellites. */
const ofSatellites = /^(?:gps|gnss)?sat(?:s|ellites?|cnt|count|num|info).+$/
const elsewhere = new RegExp(
  '^(?:gateways?|gw|rxinfo|rxmetadata|geofence.*|.*config(?:uration)?|settings?|home.*|cent(?:er|re).*|' +
    'downlink.*|beacons?.*|ble.*|bluetooth.*|wifi.*|bssids?|anchors?|targets?|dest(?:ination)?|' +
    '(?:base)?station|user|network.*|waypoints?|poi|ref(?:erence)?)$',
)
const earlier = /^(?:cached?|last|prev|previous|former|old|gpsprev|stale).*$/
const logged = new RegExp(
  '^log(?:ged)?(?:all|positions?|points?|entry|entries|records?)$|' +
    `^(?:log(?:ged)?|stored|buffered|archived?|histor(?:y|ic|ical))${placeWords}s?$`,
)
const dilution = /^(?:gps|gnss)?[hp]dop$/

const validWords = new Set(
  'fix valid validity fixvalid validfix lock locked located fixed fixok hasfix fresh freshgps freshfix'.split(
    ' ',
  ),
)
const validAfterPrefix = new Set(
  'ok success acquired available obtained found ready active enabled fresh'.split(' '),
)
const invalidWords = new Set(
  'fixfailed failedfix nofix nogps nognss nognssfix nogpsfix nolock nosignal noposition nolocation stale isstale lastknown cached outdated invalid cache'.split(
    ' ',
  ),
)
const invalidAfterPrefix = new Set('failed fail failure error err lost old unavailable'.split(' '))
const statusAfterPrefix = new Set(
  'status state type result quality mode source stat fixstatus fixtype fixquality fixmode'.split(' '),
)
const statusWords = new Set(
  'rawpositiontype positiontype fixstatus fixtype fixquality fixmode fixstate gpsfixtype'.split(' '),
)
const placeStatusWords = new Set('status state type result mode quality source'.split(' '))
const aboutWords = new Set('header properties meta metadata fixinfo fixstatus gpsinfo info'.split(' '))
const zoneWords = new Set('timezone tz utcoffset gmtoffset tzoffset timezoneoffset'.split(' '))

const unitsMs: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, s: 1000 }

/** Null for the key of anything else. */
export function coordinateOf(key: string): Extract<Role, { set: string }> | null {
  const role = roleOf(key)
  return role.kind === 'latitude' || role.kind === 'longitude' ? role : null
}

export function roleOf(key: string): Role {
  const known = cache.get(key)
  if (known) return known
  const role: Role =
    key.length > lengthMax ? { kind: 'other' } : roleOfName(key.toLowerCase().replaceAll(/[^a-z\d]/g, ''))
  cache.set(key, role)
  return role
}

function roleOfName(name: string): Role {
  const degrees = coordinate.exec(name)
  if (degrees) {
    const [, set = '', latitude, , number = ''] = degrees
    return { kind: latitude === undefined ? 'longitude' : 'latitude', set: set + number, number }
  }
  if (coordinatePart.test(name)) return { kind: 'part of coordinate' }
  if (elsewhere.test(name)) return { kind: 'elsewhere' }
  if (zoneWords.has(name)) return { kind: 'zone' }
  const part = timePart.exec(name)
  if (part) return { kind: part[1] === 'year' ? 'year' : 'part of time' }
  if (logged.test(name)) return { kind: 'earlier' }
  const ages = age.exec(name)
  if (ages) return { kind: 'age', unitMs: unitMsOf(ages[1]), number: ages[2] ?? '' }
  const elapsed = since.exec(name)
  if (elapsed) return { kind: 'age', unitMs: unitMsOf(elapsed[2] ?? elapsed[1]), number: '' }
  const before = ago.exec(name)
  if (before) return { kind: 'age', unitMs: unitMsOf(before[1]), number: '' }
  // Smaller numbers, such as a temperature, are no times.
  if (name === 't') return { kind: 'time', number: '' }
  const moment = time.exec(name)
  if (moment) return { kind: 'time', number: moment[1] ?? '' }
  const day = date.exec(name)
  if (day) return { kind: 'date', number: day[1] ?? '' }
  return markOf(name)
}

function markOf(name: string): Role {
  if (satellites.test(name)) return { kind: 'count' }
  if (ofSatellites.test(name)) return { kind: 'elsewhere' }
  if (dilution.test(name)) return { kind: 'dilution' }
  if (invalidWords.has(name)) return { kind: 'invalid' }
  if (statusWords.has(name)) return { kind: statusKindOf(name) }
  const head = prefix.exec(name)?.[0] ?? ''
  const rest = name.slice(head.length)
  if (head !== '' && (rest === 'timeout' || rest === 'timedout')) return { kind: 'timed out' }
  if (head !== '' && (invalidAfterPrefix.has(rest) || invalidWords.has(rest))) return { kind: 'invalid' }
  if (head !== '' && statusAfterPrefix.has(rest)) return { kind: statusKindOf(name) }
  if (validWords.has(name) || (head !== '' && (validWords.has(rest) || validAfterPrefix.has(rest))))
    return { kind: 'valid' }
  if ((head === 'hasfix' || head === 'isfix' || head.endsWith('fix')) && rest === '') return { kind: 'valid' }
  if (placeStatusWords.has(name)) return { kind: 'status of place' }
  if (aboutWords.has(name)) return { kind: 'about' }
  if (place.test(name)) return { kind: 'place' }
  return { kind: earlier.test(name) ? 'earlier' : 'other' }
}

/** 0 as a status of anything else may be "no error". */
function statusKindOf(name: string): 'status' | 'fix type' {
  return name.includes('fix') || name.endsWith('quality') ? 'fix type' : 'status'
}

function unitMsOf(word: string | undefined): number {
  if (word === undefined || word === 'time') return 1000
  if (word.startsWith('ms') || word.startsWith('milli')) return 1
  return unitsMs[word.charAt(0)] ?? 1000
}
