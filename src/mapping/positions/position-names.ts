// position-names.ts: what the keys of decoders mean. Decoders of trackers are written by hundreds of people;
// they use the same words with other cases, separators, prefixes and units: `gpsLatitude`, `Lat`,
// `fix_age_s`.
//
// A name with another prefix means another place: `homeLatitude` is not where the tracker is.

import { createCache } from '../bounded-cache.ts'

/**
 * `set` of a coordinate: coordinates with the same one belong together. `number`: that at the end of the key,
 * as in `latitude1` and `time1`. `unitMs`: of an age.
 */
export type Role = { kind: RoleKind; set: string; number: string; unitMs: number }

export type RoleKind = 'latitude' | 'longitude' | (typeof rows)[number]['kind'] | 'fix type' | 'other'

const cacheMax = 4096
const cache = createCache<Role>(cacheMax)
/** Longer keys are nobody's names. */
const lengthMax = 48

const receiver = '(?:gps|gnss|position(?:ing)?|pos|location|loc)'
const coordinate = new RegExp(
  `^(?<set>${receiver}|geo|tracker|device|current|cur|coord(?:inate)?s?|point|fix)?` +
    String.raw`(?:(?<latitude>latt?itude|latitud|lati|lat)|longt?itude|longitud|longi|lng|long|lon)` +
    String.raw`(?:deg|degrees?|dd|dec|decimal|wgs84)?(?<number>\d{0,3})$`,
)
const placeWords =
  `(?:${receiver}(?:data|info|fix|location|position|point|coords?|coordinates?)?|` +
  'coords?|coordinates?|latl(?:ng|on|ong)|l(?:ng|on|ong)lat|geo(?:location|point|json|metry)?|point|' +
  'fix(?:position|location))'
const number = String.raw`(?<number>\d{0,3})`
/** Before a word that says something about the fix: `gps_fix_status`. */
const prefix = new RegExp(`^(?:${receiver}|fix|has|is|got|from|latl(?:ng|on)|coords?|coordinates?)+`)

/** A row for names, or for what is behind a prefix of them. Each part has alternatives. */
const named = <Kind extends string>(kind: Kind, ...parts: readonly string[]) => ({
  kind,
  isBehindPrefix: false,
  pattern: new RegExp(`^(?:${parts.join('|')})$`),
})
const behindPrefix = <Kind extends string>(kind: Kind, ...parts: readonly string[]) => ({
  ...named(kind, ...parts),
  isBehindPrefix: true,
})

const valid =
  'fix|valid|validity|fixvalid|validfix|lock|locked|located|fixed|fixok|hasfix|fresh|freshgps|freshfix'
const invalid =
  'fixfailed|failedfix|nofix|nogps|nognss|nognssfix|nogpsfix|nolock|nosignal|noposition|nolocation|stale|isstale|' +
  'lastknown|cached|outdated|invalid|cache'

/** The first row counts. */
const rows = [
  // Minutes and seconds: the degrees beside them are not the whole coordinate.
  named(
    'part of coordinate',
    String.raw`${receiver}?(?:latitude|lat|longitude|lng|long|lon)\d*(?:min(?:utes?)?|m?sec(?:onds?)?|milliseconds?)`,
  ),
  // The place of something else: a gateway, a geofence.
  named(
    'elsewhere',
    'gateways?|gw|rxinfo|rxmetadata|geofence.*|.*config(?:uration)?|settings?|home.*|cent(?:er|re).*',
    'downlink.*|beacons?.*|ble.*|bluetooth.*|wifi.*|bssids?|anchors?|targets?|dest(?:ination)?',
    '(?:base)?station|user|network.*|waypoints?|poi|ref(?:erence)?',
  ),
  // The offset of times that are written without one: `timezone: "UTC+02:00"`.
  named('zone', 'timezone|tz|utcoffset|gmtoffset|tzoffset|timezoneoffset'),
  // The object has the parts of a time: { year, month, day, hour, minute, second, latitude, .. }.
  named('year', 'year(?:utc)?'),
  named('part of time', '(?:month|day|hour|minute|second)(?:utc)?'),
  named(
    'earlier',
    'log(?:ged)?(?:all|positions?|points?|entry|entries|records?)',
    `(?:log(?:ged)?|stored|buffered|archived?|histor(?:y|ic|ical))${placeWords}s?`,
  ),
  named(
    'age',
    `(?:last)?(?:${receiver}|fix|data|measurement|sample)*(?:age|ageof(?:the)?(?:${receiver}|fix))(?:in)?` +
      `(?<unit>ms|msec|millis(?:econds)?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)?${number}`,
  ),
  named(
    'age',
    '(?<before>seconds?|secs?|minutes?|mins?|hours?|ms|millis|time)?(?:elapsed)?since(?:last)?(?:gps|gnss)?' +
      '(?:fix|position|location)(?<unit>ms|s|secs?|seconds?|mins?|minutes?|hours?)?',
  ),
  named(
    'age',
    `(?:last)?(?:${receiver}|fix)+(?<unit>ms|millis|s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?)?ago`,
  ),
  // Smaller numbers, such as a temperature, are no times.
  named(
    'time',
    't',
    `(?:last)?(?:${receiver}|fix(?:ed)?|utc|measured?|acquired|acquisition|collect(?:ion|ed)?|sample|event|data|` +
      'record(?:ed)?)?(?:fix)?(?:utc)?(?:timestamp|time|datetime|timeutc|at|ts|utc|utctime|unix|epoch|' +
      `unixtime(?:stamp)?)(?:utc|ms|s)?(?:of)?(?:${receiver}|fix)?${number}`,
  ),
  named('date', `(?:${receiver}|utc|fix)?date(?:utc)?${number}`),
  // There is no fix where the value is false or 0, where it is true, or where its text says so.
  named(
    'count',
    '(?:gps|gnss)?(?:num(?:ber)?|nb|no|count|n)?(?:of)?(?:gps|gnss)?sat(?:s|ellites?)?' +
      '(?:inuse|used|use|count|cnt|num(?:ber)?|tracked|inview|visible|infix)?',
    '(?:num(?:ber)?|n)(?:of)?svs?',
  ),
  // Azimuths, elevations and bits of satellites.
  named('elsewhere', '(?:gps|gnss)?sat(?:s|ellites?|cnt|count|num|info).+'),
  // Dilution of precision: receivers without a fix give 99.9 and the like.
  named('dilution', '(?:gps|gnss)?[hp]dop'),
  named('invalid', invalid),
  named('status', 'rawpositiontype|positiontype|fixstatus|fixtype|fixquality|fixmode|fixstate|gpsfixtype'),
  // As `invalid`, but a number is the length of a timeout.
  behindPrefix('timed out', 'timeout|timedout'),
  behindPrefix('invalid', 'failed|fail|failure|error|err|lost|old|unavailable', invalid),
  behindPrefix(
    'status',
    'status|state|type|result|quality|mode|source|stat|fixstatus|fixtype|fixquality|fixmode',
  ),
  named('valid', valid),
  behindPrefix('valid', 'ok|success|acquired|available|obtained|found|ready|active|enabled', valid),
  named('valid', `${prefix.source.slice(1)}(?<=fix)`),
  // The same inside of a place only: `position.status`.
  named('status of place', 'status|state|type|result|mode|quality|source'),
  // Says something about the position beside it: `header.timestamp`, `properties`.
  named('about', 'header|properties|meta|metadata|fixinfo|fixstatus|gpsinfo|info'),
  // The text, list or object of a position: `location`, `gps`.
  named('place', String.raw`(?:current|cur|device|tracker)?${placeWords}\d{0,3}`),
  // An earlier position: `lastPosition`, `log_coordinates`, or that the one beside it is such a one:
  // `cached_fix: true`.
  named('earlier', '(?:cached?|last|prev|previous|former|old|gpsprev|stale).*'),
]

const unitsMs: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, s: 1000 }
const other: Role = { kind: 'other', set: '', number: '', unitMs: 0 }

/** Null for the key of anything else. */
export function coordinateOf(key: string): (Role & { kind: 'latitude' | 'longitude' }) | null {
  const { kind, ...role } = roleOf(key)
  return kind === 'latitude' || kind === 'longitude' ? { kind, ...role } : null
}

export function roleOf(key: string): Role {
  const known = cache.get(key)
  if (known) return known
  const role = key.length > lengthMax ? other : roleOfName(key.toLowerCase().replaceAll(/[^a-z\d]/g, ''))
  cache.set(key, role)
  return role
}

function roleOfName(name: string): Role {
  const degrees = coordinate.exec(name)?.groups
  if (degrees) {
    const { set = '', latitude, number: own = '' } = degrees
    return {
      ...other,
      kind: latitude === undefined ? 'longitude' : 'latitude',
      set: set + own,
      number: own,
    }
  }
  const head = prefix.exec(name)?.[0] ?? ''
  for (const { kind, isBehindPrefix, pattern } of rows) {
    const found =
      isBehindPrefix && head === '' ? null : pattern.exec(isBehindPrefix ? name.slice(head.length) : name)
    if (found === null) continue
    const { number: own = '', unit, before } = found.groups ?? {}
    // 0 as a status of anything else may be "no error".
    const isOfFix = kind === 'status' && (name.includes('fix') || name.endsWith('quality'))
    return { ...other, kind: isOfFix ? 'fix type' : kind, number: own, unitMs: unitMsOf(unit ?? before) }
  }
  return other
}

function unitMsOf(word: string | undefined): number {
  if (word === undefined || word === 'time') return 1000
  if (word.startsWith('ms') || word.startsWith('milli')) return 1
  return unitsMs[word.charAt(0)] ?? 1000
}
