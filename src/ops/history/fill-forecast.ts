// fill-forecast.ts: when the spool or its disk is full if it goes on like this. Pure.
//
// Growth counts only where every sample of the last third of the time is above every one of the first third:
// a spool that fills and drains all the time, and a disk whose tables are merged, do not grow. The spool is
// looked at over 10 minutes, because an outage begins at once; the free disk over an hour, and for twelve
// times as long as it was watched, because files of a new database grow at first.

import type { SpoolTotals } from '../../spool/spool.ts'
import { columnOf, type ColumnName, type Sample } from './history-samples.ts'

export type FillForecast = {
  secondsToFull: number | null
  /** Which of them is full first. */
  fullFirst: 'spool' | 'disk' | null
  /** Why nothing can be said. */
  secondsToFullWhy: string | null
}

const windowMs = { spool: 600_000, disk: 3_600_000 }
const leastMs = 180_000
const tooShort = 'The gateway has watched for less than three minutes.'
/** Of the disk, times as long as it was watched. */
const diskFar = 12
/** Beyond, it is no forecast. */
const farSeconds = 366 * 24 * 3600

type Limits = Pick<SpoolTotals, 'bytesMax' | 'reserveBytes' | 'freeBytesMin'>

/** `samples`: of the last hour, the newest last. */
export function forecastOf(samples: readonly Sample[], limits: Limits | null): FillForecast {
  const last = samples.at(-1)
  if (limits === null) return unknown('The spool is not open.')
  if (last === undefined) return unknown(tooShort)
  const span = (from: number) => samples.filter(({ at }) => at > last.at - from)
  const known = span(windowMs.spool)
  if (known.reduce((sum, { ms }) => sum + ms, 0) < leastMs) return unknown(tooShort)
  const used = last.values[columnOf('spoolBytes')] ?? 0
  const free = last.values[columnOf('freeBytes')] ?? null
  const spool = secondsOf(limits.bytesMax - limits.reserveBytes - used, growthOf(known, 'spoolBytes', 1))
  const ofDisk = span(windowMs.disk)
  const watchedS = ofDisk.reduce((sum, { ms }) => sum + ms, 0) / 1000
  const diskSeconds =
    free === null ? null : secondsOf(free - limits.freeBytesMin, growthOf(ofDisk, 'freeBytes', -1))
  const disk = diskSeconds !== null && diskSeconds <= diskFar * watchedS ? diskSeconds : null
  const seconds = Math.min(spool ?? farSeconds, disk ?? farSeconds)
  if (seconds >= farSeconds) return unknown('Neither the spool nor the use of its disk grows.')
  return {
    secondsToFull: Math.round(seconds),
    fullFirst: seconds === spool ? 'spool' : 'disk',
    secondsToFullWhy: null,
  }
}

function unknown(why: string): FillForecast {
  return { secondsToFull: null, fullFirst: null, secondsToFullWhy: why }
}

function secondsOf(roomBytes: number, bytesPerS: number): number | null {
  return bytesPerS > 0 ? Math.max(0, roomBytes) / bytesPerS : null
}

/** Bytes per second; `sign` -1: of what becomes less. 0: it does not grow. */
function growthOf(samples: readonly Sample[], name: ColumnName, sign: 1 | -1): number {
  const column = columnOf(name)
  const known = samples.flatMap(({ at, values }) => {
    const value = values[column]
    return value === null || value === undefined ? [] : [{ at, bytes: value * sign }]
  })
  const third = Math.floor(known.length / 3)
  const [first, last] = [known.slice(0, third), known.slice(-third)]
  if (third === 0 || Math.min(...last.map(bytesOf)) <= Math.max(...first.map(bytesOf))) return 0
  const elapsedS = (mean(last.map(({ at }) => at)) - mean(first.map(({ at }) => at))) / 1000
  return elapsedS <= 0 ? 0 : (mean(last.map(bytesOf)) - mean(first.map(bytesOf))) / elapsedS
}

function bytesOf({ bytes }: { bytes: number }): number {
  return bytes
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
