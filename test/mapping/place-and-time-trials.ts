// place-and-time-trials.ts: sources of word-trials.ts that read angles and local times, several on one topic.

import { isJsonObject } from '../../src/sandbox/payload-check.ts'
import type { Json } from './fuzz.ts'
import { at, hourMs, place, time, trialOf } from './word-trial.ts'

const minutes = (path: string, hemisphere: string) => ({
  path,
  unit: 'ddmm',
  hemisphere: { path: hemisphere },
})
const part = (index: number) => ({ path: `gll.$split(",")[${index}]`, unit: 'ddmm' })

/** Four sources on one topic. */
export const angles = trialOf({
  name: 'angles',
  sources: [
    {
      name: 'dms',
      when: 'kind == "dms"',
      map: { time, latitude: { path: 'lat', unit: 'dms' }, longitude: { path: 'lon', unit: 'dms' } },
    },
    {
      name: 'split',
      when: 'has(gll)',
      map: { time, latitude: part(0), longitude: part(1) },
    },
    {
      name: 'minutes',
      when: 'has(ns) && has(ew)',
      map: { time, latitude: minutes('lat', 'ns'), longitude: minutes('lon', 'ew') },
    },
    {
      name: 'signs',
      map: {
        time,
        latitude: { expr: 'south == 1 ? -abs(lat) : lat' },
        longitude: { expr: 'west == 1 ? -abs(lon) : lon' },
      },
    },
  ],
  messages: [
    { ts: at, kind: 'dms', lat: 'N 52 31.0', lon: '13°24\'36.5"E' },
    { ts: at + hourMs, kind: 'dms', lat: '33:52:10S', lon: '-58 22 55' },
    { ts: at + 2 * hourMs, gll: '6751.3425 N,01315.8982 E' },
    { ts: at + 3 * hourMs, gll: 'S3352.5,W05822.9' },
    { ts: at + 4 * hourMs, lat: 5231.002, ns: 'S', lon: '1324.5', ew: 'West' },
    { ts: at + 5 * hourMs, lat: '0031.002', ns: 'N', lon: 24.5, ew: 'E' },
    { ts: at + 6 * hourMs, lat: 33.87, south: 1, lon: '151.2', west: 0 },
  ],
  judge({ kind, gll, ns, ew, south, west, lat, lon }, { gps }) {
    if (!isJsonObject(gps)) return null
    const { latitude, longitude } = gps
    const isSplit = typeof gll === 'string'
    const isMinutes = !isSplit && startsWith(ns, /^[NS]/i) && startsWith(ew, /^[EW]/i)
    const isSigned = !isSplit && kind !== 'dms' && (ns ?? null) === null
    const isSouth =
      (kind === 'dms' && startsWith(lat, /^\s*S/i)) ||
      (kind !== 'dms' && isMinutes && startsWith(ns, /^S/i)) ||
      (isSigned && south === 1)
    const isWest =
      (kind === 'dms' && startsWith(lon, /^\s*W/i)) ||
      (kind !== 'dms' && isMinutes && startsWith(ew, /^W/i)) ||
      (isSigned && west === 1)
    if (isSouth && Number(latitude) > 0) return `the latitude ${String(latitude)} in the south`
    return isWest && Number(longitude) > 0 ? `the longitude ${String(longitude)} in the west` : null
  },
})

function startsWith(value: unknown, pattern: RegExp): boolean {
  return typeof value === 'string' && pattern.test(value)
}

const local = (format: string, zone: string, rest: Json = {}) => ({
  map: { time: { path: 'ts', format, zone, ...rest }, ...place },
})

export const localTimes = trialOf({
  name: 'local-times',
  world: { table: 'device,zone\n1,Europe/Berlin\n2,America/St_Johns\n3,\n' },
  sources: [
    { name: 'beside', when: 'has(day)', ...local('dmy', 'Asia/Kolkata', { date: { path: 'day' } }) },
    { name: 'month-first', when: 'order == "mdy"', ...local('mdy', 'America/New_York') },
    { name: 'year-first', when: 'order == "ymd"', ...local('ymd', 'Australia/Lord_Howe') },
    { name: 'of-device', ...local('dmy', 'device') },
  ],
  messages: [
    { ts: '13.05.2024 05:46:12', lat: 52.5, lon: 13.4 },
    { ts: '31.03.2024 02:30:00', lat: 52.5, lon: 13.4 },
    { ts: '27.10.2024 02:30:00', lat: 52.5, lon: 13.4 },
    { ts: '03/10/2024 02:30:00', order: 'mdy', lat: 40.7, lon: -74 },
    { ts: '2024/04/07 01:45:00', order: 'ymd', lat: -31.5, lon: 159 },
    { ts: '054612.28', day: '130524', lat: 28.6, lon: 77.2 },
    { ts: 54_612, day: 130_524, lat: 28.6, lon: 77.2 },
  ],
  judge({ ts, day = null, order }, { signalTimestamp }) {
    const digits = typeof ts === 'string' ? /^(\d\d)\.(\d\d)\.(\d{4}) (\d\d):(\d\d):(\d\d)$/.exec(ts) : null
    if (!digits || day !== null || order === 'mdy' || order === 'ymd') return null
    const [date = 0, month = 0, year = 0, ...clock] = digits.slice(1).map(Number)
    const inUtc = Date.UTC(year, month - 1, date, ...clock)
    // Offsets are at most 14 hours, and an hour may be skipped.
    return Math.abs(Number(signalTimestamp) - inUtc) <= 15 * hourMs
      ? null
      : `the time ${String(signalTimestamp)}`
  },
})
