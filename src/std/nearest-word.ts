// nearest-word.ts: finds the known word that is meant by another word: the usual name of the same thing, or
// the most similar word.

import { distance } from 'fastest-levenshtein'

/** Keys are short. A longer word is no typing mistake. */
const lengthMax = 64

/** Usual names, in lower case and without signs, after the word of the config that means the same. */
const synonyms: readonly (readonly [word: string, ...names: string[]])[] = [
  // Time formats, and units of durations.
  ['s', 'unix', 'epoch', 'posix', 'unixtime', 'unixtimestamp', 'sec', 'secs', 'second', 'seconds'],
  ['ms', 'unixms', 'epochms', 'millis', 'msec', 'millisecond', 'milliseconds', 'javascript'],
  ['us', 'micros', 'usec', 'microsecond', 'microseconds', 'epochus', 'unixus'],
  ['iso', 'iso8601', 'rfc3339', 'isodate'],
  ['words', 'rfc2822', 'rfc822', 'rfc1123', 'httpdate'],
  ['compact', 'yyyymmddhhmmss', 'isobasic'],
  ['dmy', 'ddmmyyyy', 'ddmmyy', 'ddmmyyyyhhmmss', 'ddmmyyhhmmss', 'european', 'german', 'nmea'],
  ['mdy', 'mmddyyyy', 'mmddyy', 'mmddyyyyhhmmss', 'american', 'us'],
  ['ymd', 'yymmdd', 'yyyymmdd', 'yymmddhhmmss'],
  ['auto', 'timestamp', 'number', 'numeric', 'integer', 'int', 'detect', 'any'],
  ['datetime', 'date', 'sql', 'utc', 'yyyymmddhhmmssutc'],
  ['s-float', 'float', 'double', 'sfloat', 'secondsfloat', 'unixfloat', 'fractional'],
  ['arrival', 'now', 'server', 'received', 'receivetime'],
  ['min', 'mins', 'minute', 'minutes'],
  ['h', 'hr', 'hrs', 'hour', 'hours'],
  // Units of speed, distance and angle.
  ['km/h', 'kph', 'kmh', 'kmph', 'kmhr', 'kilometersperhour', 'kilometresperhour'],
  ['m/s', 'mps', 'ms', 'msec', 'meterspersecond', 'metrespersecond'],
  ['mph', 'mih', 'mileph', 'milesperhour'],
  ['cm/s', 'cms', 'cmps', 'centimeterspersecond'],
  ['knots', 'kn', 'kt', 'kts', 'knot'],
  ['km', 'kilometer', 'kilometre', 'kilometers', 'kilometres', 'kms'],
  ['m', 'meter', 'metre', 'meters', 'metres', 'mtr'],
  ['mi', 'mile', 'miles'],
  ['deg', 'degree', 'degrees', 'decimaldegrees', 'wgs84'],
  ['rad', 'radian', 'radians'],
  ['1e-7deg', '1e7', 'degrees1e7', 'deg1e7', 'e7', 'scaled'],
  ['ddmm', 'nmea', 'dms', 'ddmmmm', 'degmin', 'degreesminutes', 'minutes'],
  ['utc', 'gmt', 'z', 'zulu', 'etcutc'],
  // Quantities and types.
  ['odometer', 'mileage', 'odo', 'totaldistance'],
  ['engine_hours', 'enginehours', 'hours', 'enginetime', 'motorhours'],
  ['hours', 'enginehours', 'enginetime'],
  ['battery', 'soc', 'charge', 'stateofcharge'],
  ['temperature', 'temp', 'celsius'],
  ['voltage', 'volt', 'volts', 'v'],
  ['altitude', 'alt', 'elevation', 'height'],
  ['heading', 'course', 'bearing', 'direction', 'cog'],
  ['speed', 'velocity', 'spd'],
  ['boolean', 'bool', 'flag', 'truefalse'],
  ['number', 'float', 'double', 'int', 'integer', 'numeric', 'decimal'],
  ['u8', 'uint8', 'byte', 'uchar'],
  ['i8', 'int8', 'char', 'sbyte'],
  // Not u16 for u16le: the other order of the bytes is as likely, and the wrong one reads other numbers.
  ...[16, 24, 32].flatMap((bits): [string, ...string[]][] => [
    [`u${bits}le`, `uint${bits}le`],
    [`u${bits}be`, `uint${bits}be`],
    [`i${bits}le`, `int${bits}le`],
    [`i${bits}be`, `int${bits}be`],
  ]),
  ['bits', 'bit', 'bitfield'],
  ['hex', 'hexadecimal', 'base16'],
  ['base64', 'b64'],
  ['j1939', 'can', 'fms', 'saej1939'],
  ['obd', 'obd2', 'obdii'],
  // What to do.
  ['drop', 'omit', 'remove', 'discard', 'skip', 'delete'],
  ['drop-gps', 'drop', 'omit', 'remove', 'discard', 'skip'],
  ['drop_oldest', 'drop', 'evict', 'oldest', 'discardoldest', 'deleteoldest'],
  ['ignore', 'drop', 'skip', 'discard', 'omit', 'reject', 'no', 'false'],
  ['take', 'accept', 'use', 'allow', 'keep', 'yes', 'true'],
  ['accept', 'take', 'allow', 'permit', 'use'],
  ['refuse', 'reject', 'deny', 'drop', 'forbid'],
  ['quarantine', 'hold', 'isolate', 'keep'],
  ['restamp', 'arrival', 'replace', 'now'],
  ['hold', 'keep', 'wait', 'block', 'stop'],
  ['flag', 'warn', 'mark', 'report'],
  ['off', 'none', 'no', 'never', 'disable', 'disabled', 'false', 'identity'],
  ['set_aside', 'aside', 'move', 'quarantine'],
  ['coarse', 'round', 'rounded'],
  ['message', 'arrival', 'now'],
  ['close', 'disconnect', 'kick'],
  ['gzip', 'gz', 'zip', 'on', 'yes', 'true', 'deflate'],
  ['batch', 'bulk', 'many', 'batches'],
  ['single', 'one', 'individual', 'each'],
  ['split', 'divide'],
  ['resend', 'retry', 'repeat'],
  ['delivered', 'accepted', 'success', 'ok', 'done'],
  ['oldest-first', 'oldest', 'fifo', 'asc'],
  ['newest-first', 'newest', 'lifo', 'desc', 'latest'],
  ['environment', 'env', 'environ'],
  ['chain', 'aws', 'default', 'iam', 'profile', 'sdk'],
  ['keys', 'static', 'inline', 'config'],
  ['read', 'view', 'readonly', 'viewer', 'get'],
  ['change', 'write', 'admin', 'operator', 'all', 'edit'],
  ['cn', 'commonname', 'subject'],
  ['dns', 'san', 'hostname'],
  ['email', 'mail'],
  ['warn', 'warning'],
  ['error', 'err', 'fatal', 'critical', 'silent'],
  ['info', 'information', 'notice', 'log'],
  ['trace', 'verbose', 'silly', 'all'],
  // Origins of numbers.
  ['gnss', 'gps', 'glonass', 'satellite', 'positions'],
  ['counted', 'can', 'counter', 'tracker'],
  ['ignition', 'ign', 'acc'],
  ['estimate', 'estimated', 'synthetic'],
  // Encodings.
  ['teltonika', 'codec8', 'codec8e', 'codec16', 'avl'],
  ['scalar', 'plain', 'number', 'value', 'raw'],
  ['text', 'string', 'utf8'],
  ['sparkplug', 'sparkplugb', 'spb', 'spbv10'],
]

/** The known word meant by `word`; undefined where none is near enough to be a typing mistake. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  if (word.length > lengthMax) return undefined
  const plain = word.toLowerCase().replace(/[^a-z0-9]/g, '')
  for (const [meant, ...names] of synonyms) if (names.includes(plain) && known.includes(meant)) return meant
  let best: string | undefined
  // A third of the letters may be wrong, and never all of them. Two swapped neighbours count as one.
  let distanceMin = Math.min(word.length, Math.max(1, Math.round(word.length / 3)) + 1)
  for (const candidate of known) {
    const edits = editsBetween(word, candidate)
    if (edits < distanceMin) {
      distanceMin = edits
      best = candidate
    }
  }
  return best
}

/** ` Did you mean "x"?`, or nothing where no known word is near. */
export function meantText(word: string, known: readonly string[]): string {
  const meant = nearest(word, known)
  return meant === undefined ? '' : ` Did you mean "${meant}"?`
}

function editsBetween(word: string, candidate: string): number {
  const [written, known] = [word.toLowerCase(), candidate.toLowerCase()]
  return isTruncated(word, candidate) || isSwapped(written, known) ? 1 : distance(written, known)
}

/** `drpo` for `drop`. */
function isSwapped(word: string, candidate: string): boolean {
  if (word.length !== candidate.length) return false
  let at = 0
  while (at < word.length && word[at] === candidate[at]) at += 1
  return (
    at < word.length &&
    word[at] === candidate[at + 1] &&
    word[at + 1] === candidate[at] &&
    word.slice(at + 2) === candidate.slice(at + 2)
  )
}

/** `max` for `max_bytes`, and `bytes` for `max_bytes`. */
function isTruncated(word: string, candidate: string): boolean {
  return word.length >= 3 && (candidate.startsWith(`${word}_`) || candidate.endsWith(`_${word}`))
}
