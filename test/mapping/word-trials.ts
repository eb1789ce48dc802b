// word-trials.ts: sources with fields that compute their values, for fuzz.ts. Each trial has a second opinion of
// what a message may become: sums are near those computed with BigInt, hemispheres decide the sign, a local time is near
// the same time in UTC, and values of one place in lists side by side stay together.

import { isJsonObject } from '../../src/sandbox/payload-check.ts'
import { difference, exactFrom, sum, textOf, times, type Exact } from '../support/exact-decimal.ts'
import type { Json, Trial } from './fuzz.ts'
import { angles, localTimes } from './place-and-time-trials.ts'
import { at, hourMs, place, time, trialOf } from './word-trial.ts'

const numbers = trialOf({
  name: 'numbers',
  sources: [
    {
      name: 'numbers',
      map: {
        time,
        ...place,
        speed: {
          expr: '(can.ok == 1 && has(can.v) ? can.v : v) * (u == "MPH" ? 1.609344 : u == "KPH" ? 1 : has(u) && u != "" ? null : 3.6)',
        },
        heading: { path: 'dir', values: { N: 0, NE: 45, E: 90, SE: 135, S: 180, SW: 225, W: 270, NW: 315 } },
        in_motion: { expr: 'bit(din, 1)' },
        signals: [
          {
            type: 'OBD_LIFETIME_ODOMETER',
            expr: 'number(low) + number(high) * 65536 - number(start)',
            unit: 'm',
          },
          {
            type: 'OBD_TOTAL_ENGINE_TIME',
            expr: 'minutes / (has(turns) ? turns : ratio)',
            unit: 'min',
            part: 'ENGINE',
            when: 'bit(din, 0) == 1',
          },
        ],
        fields: {
          load: { expr: 'number(weight.gross) - number(weight.tare)', type: 'number' },
          door: { path: 'door', type: 'text', values: { 0: 'closed', 1: 'open', '*': 'unknown' } },
          temp: { expr: 'cold == 1 ? -abs(t) : t', type: 'number' },
          mode: { expr: 'bits(status, 4, 4)', type: 'text', values: { 0: 'off', 5: 'on', 10: 'charging' } },
        },
      },
    },
  ],
  messages: [1, 2, 3, 4].map((step) => ({
    ts: at + step * hourMs,
    lat: 52.5 + step / 100,
    lon: 13.4,
    can: { v: 10 * step, ok: step % 2 },
    v: 9.3,
    ...(step > 1 && { u: step === 2 ? 'MPH' : 'KPH' }),
    dir: ['N', 'SW', 'E', 'NW'][step - 1],
    din: step,
    low: 1000.1 * step,
    high: step === 3 ? '6000.2' : 6000,
    start: 0.3,
    minutes: 262_260 + step,
    ratio: step,
    weight: { gross: 7.3, tare: 7.2 },
    door: step % 3,
    t: 5.5 * step,
    cold: step % 2,
    status: 16 * step,
  })),
  own: {
    load: (value) => Number.isFinite(value),
    door: (value) => value === 'closed' || value === 'open' || value === 'unknown',
    temp: (value) => typeof value === 'number' && value >= -60 && value <= 150,
    mode: (value) => value === 'off' || value === 'on' || value === 'charging',
  },
  judge(message, payload) {
    const odometer = signalOf(payload, 'OBD_LIFETIME_ODOMETER')
    if (odometer !== undefined && !isNear(odometer, metresAsKilometres(odometerOf(message))))
      return `the odometer ${odometer}`
    const hours = signalOf(payload, 'OBD_TOTAL_ENGINE_TIME')
    if (hours !== undefined && !/^\d+(\.\d{1,6})?$/.test(hours)) return `the hours ${hours}`
    const weight = isJsonObject(message['weight']) ? message['weight'] : {}
    const load = combined(weight['gross'], weight['tare'], difference)
    if (payload['load'] !== undefined && !isNear(payload['load'], load && textOf(load)))
      return `the load ${JSON.stringify(payload['load'])}`
    const unit = message['u'] ?? ''
    const hasSpeed = isJsonObject(payload['gps']) && payload['gps']['speed'] !== undefined
    return hasSpeed && unit !== '' && unit !== 'MPH' && unit !== 'KPH' ? 'a speed in an unknown unit' : null
  },
})

function odometerOf({ low, high, start }: Json): Exact | undefined {
  const whole = exactFrom(high)
  const upper = combined(low, whole && textOf(times(whole, { steps: 65_536n, places: 0 })), sum)
  return combined(upper && textOf(upper), start, difference)
}

function combined(one: unknown, other: unknown, combine: typeof sum): Exact | undefined {
  const left = exactFrom(one)
  const right = exactFrom(other)
  return left && right && combine(left, right)
}

/** Results of expressions are doubles. */
function isNear(found: unknown, exact: string | undefined): boolean {
  const [one, other] = [Number(found), Number(exact)]
  return Math.abs(one - other) <= 1e-13 * Math.max(Math.abs(other), 1)
}

function metresAsKilometres(metres: Exact | undefined): string | undefined {
  return metres && textOf({ ...metres, places: metres.places + 3 })
}

function signalOf({ signals }: Json, type: string): string | undefined {
  const found = Array.isArray(signals)
    ? signals.filter(isJsonObject).find((signal) => signal['type'] === type)
    : undefined
  return found && String(found['value'])
}

const lists = trialOf({
  name: 'lists',
  sources: [
    {
      name: 'lists',
      each: { expr: 'zip(track)' },
      map: {
        time: { path: 't', format: 's' },
        ...place,
        in_motion: { expr: 'bit(message.ok == 1 && has(m) ? m : message.m, 0)' },
        signals: [{ type: 'OBD_LIFETIME_ODOMETER', expr: 'number(odo) + number(message.start)', unit: 'km' }],
      },
    },
  ],
  messages: [0, 1].map((ok) => ({
    ok,
    m: 3,
    start: '100.1',
    track: {
      t: [at / 1000 + ok, at / 1000 + 10, at / 1000 + 20],
      lat: [52.51, 52.52, 52.53],
      lon: [13.37, 13.38, 13.39],
      m: [0, 1, 2],
      odo: [0.1, 0.2, 0.3],
    },
  })),
  judge({ track, start }, payload) {
    const columns = isJsonObject(track) ? track : {}
    const column = (key: string) => (Array.isArray(columns[key]) ? (columns[key] as unknown[]) : [])
    const { gps } = payload
    const odometer = signalOf(payload, 'OBD_LIFETIME_ODOMETER')
    const isOf = (_: unknown, index: number) => {
      const isPlace =
        !isJsonObject(gps) ||
        (numberIn(column('lat')[index]) === gps['latitude'] &&
          numberIn(column('lon')[index]) === gps['longitude'])
      const total = combined(column('odo')[index], start, sum)
      return isPlace && (odometer === undefined || isNear(odometer, total && textOf(total)))
    }
    return column('t').some(isOf) ? null : 'values that are not of one place in the lists'
  },
})

function numberIn(value: unknown): number {
  const exact = exactFrom(value)
  return exact === undefined ? Number.NaN : Number(textOf(exact))
}

const differences = trialOf({
  name: 'differences',
  remembers: true,
  sources: [
    {
      name: 'differences',
      map: {
        time,
        ...place,
        signals: [
          { type: 'OBD_LIFETIME_ODOMETER', path: 'odo' },
          { type: 'DISTANCE_SINCE_LAST', expr: 'n - previous.n', unit: 'm' },
        ],
        fields: { seconds: { expr: '(ts - previous.time) / 1000', type: 'number' } },
      },
    },
  ],
  messages: [1, 2, 3, 4].map((step) => ({
    ts: at + step * hourMs,
    lat: 52.5,
    lon: 13.4,
    odo: 1000 + step,
    n: 12.5 * step,
  })),
  own: {
    seconds: (value) => typeof value === 'number' && value > 0,
    'DISTANCE_SINCE_LAST KILOMETERS': (value) => /^\d+(\.\d+)?$/.test(String(value)),
  },
})

/** Sources with each word that computes a value. */
export const wordTrials: readonly Trial[] = [numbers, angles, localTimes, lists, differences]
