// nmea.ts: the encoding `nmea`: sentences of NMEA 0183, as GNSS receivers write them.
//
//   $GNRMC,090001.00,A,4656.8856,N,00726.8466,E,30.7,112.0,301225,,,A*74
//
// A message has any number of sentences, between any other text: on lines, behind blanks or directly one
// behind the other. The talker (GP, GN, GL, GA, GB, BD, ...) does not count. Read are
//
//   RMC   time, date, status, position, speed, course, mode        GLL   time, position, status, mode
//   GGA   time, position, quality, satellites, hdop, altitude      VTG   speed, course
//   ZDA   time, date
//
// The value is { records: [...], damaged: 0, unchecked: 0 }, with one record for each fix: sentences with the
// same time of day are one. VTG has no time and belongs to the sentence before it, or to the first one behind
// it where it begins the message. The values are texts as they are written, and an empty field is absent:
//
//   { time, timeOfDay: '090001.00', date: '301225', status: 'A', mode: 'A', latitude: '4656.8856', ns: 'N',
//     longitude: '00726.8466', ew: 'E', speed: '30.7', course: '112.0', quality, satellites, hdop, altitude }
//
// `time` is in milliseconds. Without a date it is by that of a fix beside it, and absent
// where the message has none: no date is guessed for a GGA alone. Of two positions of one fix the first valid
// one counts.
//
// What can go wrong, and what then happens
//   a checksum is wrong       the sentence is left out and counted (`damaged`); a message of such sentences
//                             only is refused: BAD_CHECKSUM
//   a checksum is missing     the sentence is read and counted in `unchecked` of the message and of its
//                             record: a sentence that was cut short may be one, so the preset refuses it
//   no position and no date   the record is left out: a receiver that finds nothing. Without other records
//                             the message is ignored as `no fix`
//   other sentences           are skipped; a message of those only is ignored
//   no sentence, or JSON      refused: BAD_FRAME. Sentences of AIS (!AIVDM) are not read

import { refused } from '../reasons.ts'
import type { Decoded } from '../types.ts'
import { hexDigit } from './text-bytes.ts'
import { momentOf, timeOfDay, twoDigits } from '../times/calendar.ts'

type NmeaValue = { records: readonly NmeaRecord[]; damaged: number; unchecked: number }

type NmeaRecord = {
  time?: number
  unchecked?: number
  [name: string]: string | number | undefined
}

/** Bounds against attacks; a receiver writes some tens of sentences for a fix. */
const sentencesMax = 20_000
const recordsMax = 1000
/** The standard allows 82 characters; receivers with many decimals write more. */
const sentenceCharactersMax = 200

type Fix = { record: NmeaRecord; isValid: boolean }

type Reading = {
  fixes: Fix[]
  /** The last fix of each time of day. */
  byTime: Map<string, Fix>
  last: Fix | null
  sentences: number
  known: number
  damaged: number
  unchecked: number
}

/** Total: no bytes make it throw. */
export function decodeNmea(bytes: Buffer): Decoded {
  if (bytes.length === 0) return { kind: 'empty' }
  // Bytes that are no text are noise between sentences, or in one whose checksum is wrong then.
  const text = bytes.toString('latin1')
  if (/^\s*[{[]/.test(text)) return inJson
  const reading = sentencesIn(text)
  const { sentences, known, damaged, fixes } = reading
  if (sentences > sentencesMax)
    return refused('TOO_MANY', `The message has more than ${sentencesMax} sentences.`)
  if (fixes.length > recordsMax) return refused('TOO_MANY', `The message has more than ${recordsMax} fixes.`)
  if (known === 0 && damaged > 0)
    return refused('BAD_CHECKSUM', 'No sentence of the message has the checksum that it says.')
  if (sentences === 0) return refused('BAD_FRAME', 'The message has no NMEA sentence, such as $GPRMC,...*6A.')
  if (known === 0) return { kind: 'ignored', reason: 'other sentences' }
  const value = valueOf(reading)
  if (value.records.length === 0) return { kind: 'ignored', reason: 'no fix' }
  return { kind: 'value', value, omitted: Array.from({ length: damaged }, () => 'sentence|checksum') }
}

/** Its keys, such as the name of the device, would be lost. */
const inJson: Decoded = refused(
  'BAD_FRAME',
  'The message is JSON. Read sentences in one of its keys with `encoding: json` and `extract` with `as: nmea`.',
)

/** Of a text or a list of texts; undefined where they have no sentence that is read. */
export function nmeaIn(value: unknown): NmeaValue | undefined {
  const text = Array.isArray(value) ? value.filter((one) => typeof one === 'string').join('\n') : value
  if (typeof text !== 'string') return undefined
  const reading = sentencesIn(text)
  const { sentences, known, damaged, fixes } = reading
  if (sentences > sentencesMax || fixes.length > recordsMax || known + damaged === 0) return undefined
  return valueOf(reading)
}

function valueOf({ fixes, damaged, unchecked }: Reading): NmeaValue {
  const records: NmeaRecord[] = []
  const times = timesOfFixes(fixes.map(({ record }) => record))
  for (const [index, { record }] of fixes.entries()) {
    const { latitude, date } = record
    if (latitude === undefined && date === undefined) continue
    const time = times[index] ?? Number.NaN
    records.push(Number.isNaN(time) ? record : { time, ...record })
  }
  return { records, damaged, unchecked }
}

function sentencesIn(text: string): Reading {
  const reading: Reading = {
    fixes: [],
    byTime: new Map(),
    last: null,
    sentences: 0,
    known: 0,
    damaged: 0,
    unchecked: 0,
  }
  for (let at = text.indexOf('$'); at !== -1;) {
    const end = endOf(text, at + 1)
    takeSentence(text.slice(at + 1, end), reading)
    if (reading.sentences > sentencesMax || reading.fixes.length > recordsMax) break
    at = text.indexOf('$', end)
  }
  return reading
}

/** Where a sentence ends: before the end of the line, the next sentence, or what is too long for one. */
function endOf(text: string, start: number): number {
  const most = Math.min(text.length, start + sentenceCharactersMax)
  for (let at = start; at < most; at += 1) {
    const unit = text.charCodeAt(at)
    if (unit === 0x0d || unit === 0x0a || unit === 0x24 || unit === 0x21) return at
  }
  return most
}

function takeSentence(sentence: string, reading: Reading): void {
  if (!/^[A-Z][A-Z0-9]{3,9},/.test(sentence)) return
  reading.sentences += 1
  // P begins a sentence of a maker, such as $PGRMC.
  const take = sentence.startsWith('P') ? undefined : takers[sentence.slice(2, 5)]
  if (take === undefined || sentence[5] !== ',') return
  const star = sentence.indexOf('*')
  const written = star === -1 ? sentence.trimEnd() : sentence.slice(0, star)
  const isTooLong = sentence.length >= sentenceCharactersMax
  if (isTooLong || (star !== -1 && sumOf(written) !== statedSum(sentence, star + 1))) {
    reading.damaged += 1
    return
  }
  reading.known += 1
  const fix = take(written.split(','), reading)
  if (fix === null || star !== -1) return
  reading.unchecked += 1
  fix.record.unchecked = (fix.record.unchecked ?? 0) + 1
}

/** The exclusive or of all characters between `$` and `*`. */
function sumOf(written: string): number {
  let sum = 0
  for (let at = 0; at < written.length; at += 1) sum ^= written.charCodeAt(at)
  return sum
}

/** -1 for anything but two hexadecimal digits. */
function statedSum(sentence: string, at: number): number {
  const high = hexDigit(sentence.charCodeAt(at))
  const low = hexDigit(sentence.charCodeAt(at + 1))
  return high < 0 || low < 0 ? -1 : high * 16 + low
}

/** Adds a sentence to its fix; null where it has nothing to add. */
type Take = (fields: readonly string[], reading: Reading) => Fix | null

const takers: Readonly<Record<string, Take | undefined>> = {
  RMC: takeRmc,
  GGA: takeGga,
  GLL: takeGll,
  VTG: takeVtg,
  ZDA: takeZda,
}

function takeRmc(fields: readonly string[], reading: Reading): Fix {
  const date = fields[9]?.trim() ?? ''
  const fix = fixAt(fields[1], date, reading)
  const isValid = fields[2] === 'A'
  add(fix, { date })
  takePosition(fix, isValid, fields.slice(3, 7), { status: fields[2], mode: fields[12] })
  add(fix, { speed: fields[7], course: fields[8] })
  return fix
}

function takeGga(fields: readonly string[], reading: Reading): Fix {
  const fix = fixAt(fields[1], '', reading)
  takePosition(fix, /^[1-9]/.test(fields[6] ?? ''), fields.slice(2, 6), {})
  add(fix, { quality: fields[6], satellites: fields[7], hdop: fields[8], altitude: fields[9] })
  return fix
}

function takeGll(fields: readonly string[], reading: Reading): Fix {
  const fix = fixAt(fields[5], '', reading)
  takePosition(fix, fields[6] === 'A', fields.slice(1, 5), { status: fields[6], mode: fields[7] })
  return fix
}

/** The form before NMEA 2.0 has no letters behind its numbers, and is not read. */
function takeVtg(fields: readonly string[], reading: Reading): Fix | null {
  if (fields[2] !== 'T' || fields[6] !== 'N') return null
  const fix = reading.last ?? opened('', reading)
  add(fix, { course: fields[1], speed: fields[5] })
  return fix
}

function takeZda(fields: readonly string[], reading: Reading): Fix | null {
  const [, time, day, month, year] = fields
  if (day?.length !== 2 || month?.length !== 2 || year?.length !== 4) return null
  const date = day + month + year.slice(2)
  const fix = fixAt(time, date, reading)
  add(fix, { date })
  return fix
}

/** The fix of a time of day. Without a time a sentence belongs to the one before it. */
function fixAt(written: string | undefined, date: string, reading: Reading): Fix {
  const time = written?.trim() ?? ''
  if (time === '') return reading.last ?? opened('', reading)
  // Some sentences of one fix are written with decimals, others without.
  const key = time.includes('.') ? time.replace(/\.?0*$/, '') : time
  const known = reading.byTime.get(key)
  const own = known?.record['date']
  if (known && (date === '' || own === undefined || own === date)) {
    reading.last = known
    return known
  }
  const { last } = reading
  const isOpen = last !== null && last.record['timeOfDay'] === undefined
  const fix = isOpen ? last : opened(time, reading)
  fix.record['timeOfDay'] = time
  reading.byTime.set(key, fix)
  return fix
}

function opened(time: string, reading: Reading): Fix {
  const fix: Fix = { record: time === '' ? {} : { timeOfDay: time }, isValid: false }
  reading.fixes.push(fix)
  reading.last = fix
  return fix
}

/** A position, with what its sentence says about it, is taken as a whole. */
function takePosition(
  fix: Fix,
  isValid: boolean,
  [latitude, ns, longitude, ew]: readonly (string | undefined)[],
  about: Readonly<Record<string, string | undefined>>,
): void {
  if (isValid && !fix.isValid) {
    for (const name of ['latitude', 'ns', 'longitude', 'ew', ...Object.keys(about)]) delete fix.record[name]
    fix.isValid = true
  }
  const isWhole = (latitude ?? '') !== '' && (longitude ?? '') !== ''
  if (isWhole && fix.record['latitude'] === undefined) add(fix, { latitude, ns, longitude, ew })
  add(fix, about)
}

/** Values that are not empty, where the fix does not have them yet. */
function add({ record }: Fix, values: Readonly<Record<string, string | undefined>>): void {
  for (const [name, written] of Object.entries(values)) {
    const value = written?.trim() ?? ''
    if (value !== '') record[name] ??= value
  }
}

// The times of the fixes of a message with sentences of NMEA 0183. RMC and ZDA have a date,
// GGA and GLL the time of day only.
//
// A receiver writes its fixes one after the other, and a message may end between the sentences of one. So a
// fix without a date has that of the fix beside it in the message, also across midnight, where the two are
// within an hour. A day is never guessed: alone, or far from every date, a GGA has no time.

const dayMs = 86_400_000
const besideMs = 3_600_000

/** UTC; NaN for a fix whose time is not known, or does not exist. */
function timesOfFixes(fixes: readonly NmeaRecord[]): number[] {
  const times = fixes.map((fix) => midnightOf(fix) + clockOf(fix))
  /** Of each fix the next time behind it that has a date of its own. */
  const behind: number[] = []
  for (let at = fixes.length - 1, next = Number.NaN; at >= 0; at -= 1) {
    behind[at] = next
    next = Number.isNaN(times[at]) ? next : times[at]!
  }
  for (const [at, fix] of fixes.entries())
    if (fix['date'] === undefined) times[at] = nearestOf(clockOf(fix), [times[at - 1], behind[at]])
  return times
}

/** The moment with this time of day that is nearest to one of `others`, within an hour of it; else NaN. */
function nearestOf(clock: number, others: readonly (number | undefined)[]): number {
  let nearest = Number.NaN
  let nearestMs = besideMs
  for (const other of others) {
    if (other === undefined) continue
    const today = Math.floor(other / dayMs) * dayMs + clock
    for (const moment of [today - dayMs, today, today + dayMs]) {
      const gapMs = Math.abs(moment - other)
      if (!(gapMs <= nearestMs)) continue
      nearest = moment
      nearestMs = gapMs
    }
  }
  return nearest
}

/** Years before 80 are after 2000. */
function midnightOf({ ['date']: date }: NmeaRecord): number {
  if (typeof date !== 'string' || !/^\d{6}$/.test(date)) return Number.NaN
  const year = twoDigits(date, 4)
  return momentOf(year < 80 ? 2000 + year : 1900 + year, twoDigits(date, 2), twoDigits(date, 0), 0)
}

function clockOf({ ['timeOfDay']: written }: NmeaRecord): number {
  if (typeof written !== 'string' || !/^\d{6}(\.\d*)?$/.test(written)) return Number.NaN
  const ms = Number(written.slice(7, 10).padEnd(3, '0'))
  return timeOfDay(twoDigits(written, 0), twoDigits(written, 2), twoDigits(written, 4)) + ms
}
