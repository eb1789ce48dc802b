// An option that would do nothing, or not what it says, is a problem of the config: the gateway does not start with it,
// and names the option. The same option where it has its effect is none.

import { describe, expect, test } from 'vitest'
import { resultsOf, type Row } from '../support/row-pipeline.ts'

type Given = Pick<Row, 'map' | 'source'> & { sections?: Record<string, unknown> }

const start = ({ map = {}, source = {}, sections }: Given) =>
  resultsOf({ row: { map, source, messages: [] } }, sections)

const profile = (one: object) => ({ sections: { privacy: { profiles: { night: one } } } })
const time = (format: string | readonly string[], more = {}) => ({
  map: { time: { path: 'ts', format, ...more } },
})
const speed = (field: object) => ({ map: { speed: { unit: 'km/h', ...field } } })
const motion = (field: object) => ({ map: { in_motion: field } })
const signal = (field: object) => ({ map: { signals: [{ type: 'X', ...field }] } })
const field = (one: object) => ({ map: { fields: { x: one } } })
const valid = { valid: 'fix == 1' }
const collected = { name: { path: 'name' }, names: ['ts', 'lat', 'lon'], window: '1s' }

describe('the gateway refuses', () => {
  test.each<[what: string, given: Given, problem: RegExp]>([
    // What is remembered is read by `fix.valid` and `in_motion` at the top of a record.
    [
      'a value in an object to remember',
      { source: { remember: { names: ['gps.fix'] }, fix: { valid: 'gps.fix == 1' } } },
      /remember\.names\[0\] .*they read gps/,
    ],
    [
      'a value to remember that nothing reads',
      { source: { remember: { names: ['fix', 'lock'] }, fix: valid } },
      /remember\.names\[1\] .*they read fix/,
    ],
    [
      'a value to remember without a reader',
      { source: { remember: { names: ['lock'] } } },
      /remember\.names\[0\] .*they read nothing/,
    ],
    // What is not collected is never seen.
    [
      'a condition over what is not collected',
      { source: { coalesce: collected, when: 'lat != null && quality == "good"' } },
      /when .*does not have: quality/,
    ],
    [
      'a field of what is not collected',
      { source: { coalesce: collected }, map: { speed: { path: 'spd', unit: 'km/h' } } },
      /map\.speed\.path reads spd, which `coalesce\.names` does not have/,
    ],
    [
      'a field with an expression of it',
      { source: { coalesce: collected }, ...signal({ expr: 'hi * 256 + lat' }) },
      /signals\[0\]\.expr reads hi/,
    ],
    [
      'a fix of what is not collected',
      { source: { coalesce: collected, fix: valid } },
      /fix\.valid reads fix/,
    ],
    [
      'a capture in a condition of collected values',
      {
        source: {
          coalesce: { ...collected, name: '{level}' },
          when: 'topic.level == "lat"',
        },
      },
      /when uses a capture of the topic/,
    ],
    [
      'a complete record of what is not collected',
      { source: { coalesce: { ...collected, complete: ['odo'] } } },
      /coalesce .*names odo/,
    ],
    // Topics, devices, families.
    [
      'a topic without the device',
      { source: { topic: ['row-0/{car}', 'other/+'], device: '{car}' } },
      /topic\[1\] has no \{car\}/,
    ],
    [
      'a topic without a level of the name',
      { source: { topic: ['row-0/{depot}/{car}', 'other/{car}'], device: '{depot}-{car}' } },
      /topic\[1\] has no \{depot\}/,
    ],
    [
      'a * before the end of a model',
      { source: { families: { heavy: ['FMC*', 'FM*50'] } } },
      /families\.heavy\[1\] .*only "FM\*" has a meaning/,
    ],
    // A fix.
    [
      'a fix that checks nothing',
      { source: { fix: { max_age: '5m' } } },
      /fix has no effect: it needs `valid` or `time`/,
    ],
    [
      'an old fix without its time',
      { source: { fix: { ...valid, old: 'keep' } } },
      /fix\.old has no effect without `fix\.time`/,
    ],
    [
      'what to do without a fix, without `fix`',
      { source: { no_fix: 'keep' } },
      /no_fix has no effect without `fix`/,
    ],
    // Times.
    [
      'a number format behind another one',
      time(['iso', 'ms', 's']),
      /format s behind ms, which reads every number/,
    ],
    ['a number format behind auto', time(['auto', 'us']), /format us behind auto/],
    ['a zone of a number', time('ms', { zone: 'utc' }), /zone, which the format ms does not read/],
    ['arrival beside other formats', time(['ms', 'arrival']), /arrival beside other formats/],
    // Values.
    ['a default beside a constant', speed({ value: 5, default: 7 }), /"default" beside a constant/],
    ['absent values of a constant', speed({ value: 5, absent: [5] }), /"absent" beside a constant/],
    ['a table of a constant', motion({ value: true, values: { a: true } }), /"values" beside a constant/],
    [
      'a text as a constant of a number',
      field({ value: 'fast', type: 'number' }),
      /value that is not a number/,
    ],
    [
      'a number as a constant that is true or false',
      field({ value: 5, type: 'boolean' }),
      /value that is not true or false/,
    ],
    [
      'a table of texts for a number',
      speed({ path: 's', values: { fast: '80', slow: 'ten' } }),
      /value for "slow" that is not a number/,
    ],
    [
      'a table of texts for true or false',
      motion({ path: 'm', values: { '*': 'driving' } }),
      /value for "\*" that is not true or false/,
    ],
    [
      'a table of texts for a signal',
      signal({ path: 'x', values: { 1: true } }),
      /value for "1" that is not a decimal number/,
    ],
    ['a scale of a text', field({ path: 'x', type: 'text', scale: 2 }), /need the type number/],
    [
      'a position by default',
      { map: { latitude: { path: 'lat', default: 1 } } },
      /latitude has a default: messages without a position would be sent/,
    ],
    // Privacy.
    [
      'a coarse position without working hours',
      profile({ outside: 'coarse' }),
      /night\.outside has no effect without `hours`/,
    ],
    [
      'a zone without working hours',
      profile({ hide: ['speed'], zone: 'Europe/Paris' }),
      /night\.zone has no effect without `hours`/,
    ],
    ['a profile that withholds nothing', profile({}), /night withholds nothing/],
    // Merging.
    ['a group of one source', { source: { merge: { group: 'assets' } } }, /merge joins nothing/],
  ])('%s', async (_what, given, problem) => {
    await expect(start(given)).rejects.toThrow(problem)
  })

  test('a field that is an object in another source of its group', async () => {
    const merge = { group: 'assets' }
    const map = (name: string) => ({ fields: { [name]: { path: 'x', type: 'text' } } })
    await expect(
      resultsOf({
        phone: { source: { merge }, map: map('trip'), messages: [] },
        box: { source: { merge }, map: map('trip.load'), messages: [] },
      }),
    ).rejects.toThrow(/fields\.trip is a value, and an object in the source "row-1" of the same group/)
  })
})

test('the same options where they have an effect are taken', async () => {
  const given: Given[] = [
    { source: { remember: { names: ['fix'] }, fix: valid } },
    { source: { families: { heavy: ['FMC*', 'FM350'] } } },
    { source: { topic: ['row-2/{car}', 'other/+'], device: ['{car}', { path: 'imei' }] } },
    { source: { topic: ['row-3/{car}', 'others/+'], device: ['{car}', '{clientid}'] } },
    { source: { coalesce: { ...collected, names: undefined }, fix: valid, when: 'lat != null' } },
    { source: { coalesce: collected, when: 'lat != null' } },
    { source: { fix: { time: { path: 'fixed', format: 's' }, old: 'keep' }, no_fix: 'keep' } },
    // What a preset has is taken away, or chosen from.
    { source: { preset: 'owntracks', fix: {} } },
    {
      source: {
        preset: 'teslamate',
        coalesce: { name: '{level}', names: ['latitude', 'longitude', 'state'] },
      },
    },
    time(['iso', 'ms', 'datetime']),
    time(['words', 'auto'], { zone: 'utc' }),
    speed({ path: 's', values: { fast: '80', none: '' }, absent: [0], default: 7 }),
    motion({ path: 'm', values: { driving: 'yes', '*': 0 } }),
    field({ value: 'no', type: 'boolean' }),
    { map: { latitude: { value: 48 }, longitude: { value: 9 } } },
  ]
  const rows = Object.fromEntries(
    given.map(({ map = {}, source = {} }, index) => [`row ${index}`, { map, source, messages: [] }]),
  )
  const profiles = {
    one: { hide: ['speed'] },
    two: { round: 2 },
    three: { hours: '06:00-18:00', zone: 'Europe/Paris', outside: 'coarse' },
  }
  expect(Object.keys(await resultsOf(rows, { privacy: { profiles } }))).toHaveLength(given.length)
})

test('`when` beside `coalesce` is checked with the collected values', async () => {
  const values = (sat: number) =>
    Object.entries({ lat: 48, lon: 9, sat }).map(([name, value]) => ({
      name,
      value,
      lat: undefined,
      lon: undefined,
    }))
  const row = (sat: number): Row => ({
    source: {
      coalesce: {
        name: { path: 'name' },
        time: { path: 'ts', format: 'ms' },
        complete: ['lat', 'lon', 'sat'],
      },
      when: 'sat >= 3',
    },
    map: { time: undefined },
    messages: values(sat),
  })
  const { good, bad } = await resultsOf({ good: row(7), bad: row(2) })
  expect(good?.sent.map(({ gps }) => gps)).toEqual([{ latitude: 48, longitude: 9 }])
  expect(bad?.sent).toEqual([])
  expect(bad?.refused).toEqual(['when: sat >= 3'])
})
