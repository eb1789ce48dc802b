// What users of other mapping tools ask for, as it is said here: a question, the fields, a message, what is sent.

import { expect, test } from 'vitest'
import { messageOf, openMapperOf, payloadsIn } from '../../support/mapping-world.ts'

const base = { ts: 1_763_690_000_000, lat: 52.5, lon: 13.4 }
const x = (field: Record<string, unknown>) => ({ fields: { x: { type: 'number', ...field } } })

type Question = {
  ask: string
  map: Record<string, unknown>
  source?: Record<string, unknown>
  messages: readonly Record<string, unknown>[]
  /** Of the last message: the value of `x`, or a part of the payload. */
  sent: unknown
}

const questions: readonly Question[] = [
  {
    ask: 'The sensor sends 16 bits as two registers of 8; I need one number.',
    map: x({ expr: 'lo + hi * 256', scale: 0.1 }),
    messages: [{ lo: 44, hi: 1 }],
    sent: { x: 30 },
  },
  {
    ask: 'Bit 2 of the alarm register tells that the ignition is on.',
    map: { in_motion: { expr: 'bit(alarm, 2)' } },
    messages: [{ alarm: 6 }],
    sent: { gps: { inMotion: true } },
  },
  {
    ask: 'Bits 0 to 4 are a state, which I want as a word.',
    map: { fields: { x: { type: 'text', expr: 'bits(reg, 0, 5)', values: { 2: 'idle', 3: 'run' } } } },
    messages: [{ reg: 12_610 }],
    sent: { x: 'idle' },
  },
  {
    ask: 'The status is DRIVING, IDLE or CHARGING; the service wants true or false.',
    map: { in_motion: { path: 'status', values: { DRIVING: true, IDLE: false, CHARGING: false } } },
    messages: [{ status: 'CHARGING' }],
    sent: { gps: { inMotion: false } },
  },
  {
    ask: 'Enumerations come as words, and my database wants numbers.',
    map: x({ path: 'zone', values: { idle: 0, active_heat: 1, active_cool: 2 } }),
    messages: [{ zone: 'active_cool' }],
    sent: { x: 2 },
  },
  {
    ask: 'A GGA modem gives 5204.28330 and N.',
    map: {
      latitude: { path: 'pos', unit: 'ddmm', hemisphere: { path: 'ns' } },
      longitude: { path: 'lon' },
    },
    messages: [{ pos: '5204.28330', ns: 'S' }],
    sent: { gps: { latitude: -52.071388333 } },
  },
  {
    ask: 'A GLL receiver gives both in one text.',
    map: {
      latitude: { path: 'll.$split(",")[0]', unit: 'ddmm' },
      longitude: { path: 'll.$split(",")[1]', unit: 'ddmm' },
    },
    messages: [{ ll: '6751.3425 N,01315.8982 E' }],
    sent: { gps: { latitude: 67.855708333, longitude: 13.26497 } },
  },
  {
    ask: 'The tracker writes N 52 31.0.',
    map: { latitude: { path: 'n', unit: 'dms' }, longitude: { path: 'e', unit: 'dms' } },
    messages: [{ n: 'N 52 31.0', e: 'E 13 24.5' }],
    sent: { gps: { latitude: 52.516666667, longitude: 13.408333333 } },
  },
  {
    ask: 'The sign of the temperature is in a field of its own.',
    map: x({ expr: 'below == 1 ? -t : t' }),
    messages: [{ t: 12.5, below: 1 }],
    sent: { x: -12.5 },
  },
  {
    ask: 'The boards send local time without a zone.',
    map: { time: { path: 'Time', format: 'iso', zone: 'America/Los_Angeles' } },
    messages: [{ Time: '2025-08-24T07:17:52' }],
    sent: { signalTimestamp: Date.UTC(2025, 7, 24, 14, 17, 52) },
  },
  {
    ask: 'The date is day first, and beside the time.',
    map: { time: { path: 'clock', date: { path: 'day' }, format: 'dmy', zone: 'Europe/Berlin' } },
    messages: [{ clock: '07:17:52', day: '24.11.2025' }],
    sent: { signalTimestamp: Date.UTC(2025, 10, 24, 6, 17, 52) },
  },
  {
    ask: 'Each field is a list, and the elements of one index belong together.',
    map: { time: { path: 't', format: 's' } },
    source: { each: { expr: 'zip(log)' } },
    messages: [{ log: { t: [1_763_690_000, 1_763_690_010], lat: [52, 53], lon: [13, 14] } }],
    sent: { signalTimestamp: 1_763_690_010_000, gps: { latitude: 53, longitude: 14 } },
  },
  {
    ask: 'Speed is in the unit that another field names.',
    map: { speed: { expr: 'u == "mi/h" ? v * 1.609344 : v' } },
    messages: [{ v: 10, u: 'mi/h' }],
    sent: { gps: { speed: 16.09344 } },
  },
  {
    ask: 'Use the speed of the CAN bus where it is valid, else that of the receiver.',
    map: { speed: { path: [{ path: 'can.v', when: 'can.valid == 1' }, 'v'] } },
    messages: [{ can: { v: 50, valid: 0 }, v: 48 }],
    sent: { gps: { speed: 48 } },
  },
  {
    ask: 'A counter of pulses only grows; I need the difference to the last message.',
    map: { signals: [{ type: 'PULSES', expr: 'n - previous.n' }] },
    messages: [{ n: 100 }, { ts: base.ts + 60_000, n: 142 }],
    sent: { signals: [{ value: '42' }] },
  },
  {
    ask: 'Consumption is fuel over distance, without float noise.',
    map: x({ expr: 'fuel / km * 100' }),
    messages: [{ fuel: 0.3, km: 3 }],
    sent: { x: 10 },
  },
]

test.each(questions)('$ask', ({ map, source, messages, sent }) => {
  const usual = { time: { path: 'ts', format: 'ms' }, latitude: { path: 'lat' }, longitude: { path: 'lon' } }
  const mapper = openMapperOf([
    { name: 'q', topic: 'telemetry/v1/{device}', ...source, map: { ...usual, ...map } },
  ])
  const results = messages.map((message) => payloadsIn(mapper.map(messageOf({ ...base, ...message }))))
  const last = results.at(-1)?.at(-1)
  expect(JSON.parse(last?.json ?? '{}')).toMatchObject(sent as object)
})
