// What a device sends in the place of an odometer that it does not know never becomes the odometer of the vehicle:
// not as the first reading, not by repetition, and not over a restart.

import { expect, test } from 'vitest'
import { resultsOf, rowTime, type Row } from '../support/row-pipeline.ts'
import { startPipeline, topicOf, type Pipeline } from '../support/pipeline-world.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const startMs = Date.now() - 3 * 86_400_000

async function publish(
  pipeline: Pipeline,
  readings: readonly (readonly [minutes: number, odometer: number])[],
) {
  const device = await pipeline.device('car-7')
  readings.forEach(([minutes, odometer], index) => {
    const payload = JSON.stringify({ ts: startMs + minutes * minuteMs, lat: 52.5, lon: 13.4, odometer })
    device.publish({ topic: topicOf('car-7'), payload, messageId: index + 1 })
  })
  await device.acked(readings.length)
  device.destroy()
}

/** The odometers that the service has, in the order of their times. */
function odometersOf({ sandbox }: Pipeline): (string | undefined)[] {
  return sandbox
    .received({ limit: 10_000 })
    .map(({ payload }) => ({ at: Number(payload['signalTimestamp']), signals: payload['signals'] }))
    .sort((one, other) => one.at - other.at)
    .map(({ signals }) => (signals as { value: string }[] | undefined)?.[0]?.value)
}

test('a car that sleeps and sends 0 every five minutes keeps its odometer', async () => {
  const pipeline = await startPipeline()
  const zeros = Array.from({ length: 300 }, (_, index) => [10 + index * 5, 0] as const)
  await publish(pipeline, [[0, 16_777.215], [5, 48_212], ...zeros.slice(0, 150)])
  await pipeline.until(() => pipeline.status().totals.delivered === 152)
  await pipeline.gateway.stop('the test restarts it')
  const next = await startPipeline({ folder: pipeline.folder })
  await publish(next, [...zeros.slice(150), [1600, 48_212], [1605, 48_213]])
  await next.until(() => next.status().totals.delivered === 152)
  const sent = [...odometersOf(pipeline), ...odometersOf(next)]
  expect(sent).toHaveLength(304)
  expect(sent.filter((value) => value !== undefined)).toEqual(['48212', '48212', '48213'])
  expect(next.events.map(({ kind }) => kind)).not.toContain('odometer_reset')
}, 30_000)

/** Options of the odometer beside its path, what the device writes first, what it writes then, and what is sent. */
const firsts: [how: string, options: object, first: unknown, then: unknown, sent: string[]][] = [
  ...[8, 15, 16, 20, 23, 24, 30].map((bits): (typeof firsts)[number] => {
    const value = 2 ** bits - 1
    const then = Math.min(value + 7, 5_000_000)
    return [`${bits} bits`, { unit: 'm' }, value, then * 3, [String((then * 3) / 1000)]]
  }),
  ['the smallest of 32 bits', { unit: 'm' }, 2 ** 31, 48_212_000, ['48212']],
  ['hundreds of metres', { scale: 0.1 }, 65_535, 482_120, ['48212']],
  ['an offset', { offset: 100_000 }, 65_535, 48_212, ['148212']],
  ['an offset and nothing', { offset: 100_000 }, 0, 48_212, ['148212']],
  ['an offset and a text', { offset: 100_000 }, ' +255', 48_212, ['148212']],
  ['an expression', { path: undefined, expr: 'odo * 5 + 3' }, 32_767, 9642, ['48213']],
  [
    'bytes',
    { path: undefined, expr: 'odo.hi * 256 + odo.lo + 5' },
    { hi: 255, lo: 255 },
    { hi: 1, lo: 255 },
    ['516'],
  ],
  [
    'another value',
    { path: undefined, expr: 'odo + (gear > 5 ? 5 : 0)', gear: 255 },
    48_206,
    48_212,
    ['48211', '48212'],
  ],
  ['nines of six digits', {}, 999_999, 48_212, ['48212']],
  ['nines of seven digits', {}, 9_999_999, 48_212, ['48212']],
  ['nines with a point', {}, '99999.9', 48_212, ['48212']],
  ['nines in miles', { unit: 'mi' }, 999_999, 48_212, ['77589.692928']],
  ['ones that count up', {}, 254, 255, ['254', '255']],
]

test('a first reading that is a placeholder in the unit of the device is withheld until another comes', async () => {
  const rows = firsts.map(([how, options, first, then]): [string, Row] => {
    const { gear = 1, ...more } = options as { gear?: number }
    const signals = [{ type: 'OBD_LIFETIME_ODOMETER', path: 'odo', unit: 'km', ...more }]
    const at = (minutes: number, odo: unknown) => ({
      ts: rowTime - hourMs + minutes * minuteMs,
      odo,
      gear: minutes === 0 ? gear : 1,
    })
    return [how, { map: { signals }, messages: [at(0, first), at(20, first), at(40, then)] }]
  })
  const results = await resultsOf(Object.fromEntries(rows))
  const odometers = ([how]: (typeof firsts)[number]) =>
    results[how]!.sent.flatMap(({ signals = [] }) => signals.map(({ value }) => value))
  expect(firsts.map((row) => [row[0], [...new Set(odometers(row))]])).toEqual(
    firsts.map((row) => [row[0], row[4]]),
  )
})

test('the total fuel used is such a counter, and the fuel of a trip or in a tank is none', async () => {
  const row = (type: string): Row => ({
    map: { signals: [{ type, path: 'fuel', value_unit: 'LITERS', scale: 0.5 }] },
    messages: [16_777_215, 40_000, 0, 40_010].map((fuel) => ({ fuel })),
  })
  const types = ['TOTAL_FUEL_USED', 'TRIP_FUEL_USED', 'FUEL_LEVEL']
  const results = await resultsOf(Object.fromEntries(types.map((type) => [type, row(type)])))
  const values = types.map((type) =>
    results[type]!.sent.flatMap(({ signals = [] }) => signals.map(({ value }) => value)),
  )
  const all = ['8388607.5', '20000', '0', '20005']
  expect(values).toEqual([['20000', '20005'], all, all])
})

test('the distance of a trip that is the largest number of some bits is omitted, and others are sent', async () => {
  const trip = { type: 'TRIP_DISTANCE', path: 'trip', unit: 'm', value_unit: 'KILOMETERS' }
  const field = { path: 'trip', type: 'number', quantity: 'distance' }
  const all = [65_535, 16_777_215, 999_999, 0, 255, 65_536]
  const row = (plausibility: object): Row => ({
    source: { plausibility },
    map: { signals: [trip], fields: { trip: field } },
    messages: all.map((value) => ({ trip: value })),
  })
  const { judged, flagged } = await resultsOf({
    judged: row({}),
    flagged: row({ distance: { action: 'flag' } }),
  })
  const values = (result: typeof judged) => result!.sent.map(({ signals }) => signals?.[0]?.value)
  const sentTexts = ['0', '0.255', '65.536']
  expect(values(judged)).toEqual([undefined, undefined, undefined, ...sentTexts])
  expect(judged!.sent.map(({ trip: sent }) => sent)).toEqual([
    undefined,
    undefined,
    undefined,
    ...all.slice(3),
  ])
  expect(values(flagged)).toEqual(['65.535', '16777.215', '999.999', ...sentTexts])
})

test('a placeholder of a counter is no difference, and the next difference has all that it grew by', async () => {
  const row = (unset: unknown): Row => ({
    map: { fields: { km: { expr: 'odo - previous.odo', type: 'number' } } },
    messages: [unset, 48_212, 48_213, unset, unset, 48_216, 48_217].map((odo) => ({ odo })),
  })
  const unset = [0, 65_535, 16_777_215, 16_777.215]
  const results = await resultsOf(Object.fromEntries(unset.map((value, index) => [index, row(value)])))
  const none = undefined
  for (const { sent, omitted } of Object.values(results)) {
    expect(sent.map(({ km }) => km)).toEqual([none, none, 1, none, none, 3, 1])
    expect(omitted).toEqual(Array<string>(3).fill('previous.odo: a placeholder'))
  }
})
