// field-options.ts: how a random source sets each option of a field. The table names every option: one that is
// added later does not compile without an entry, so both mappings are compared with it.

import type { MapConfig } from '../../../src/mapping/config.ts'
import type { Random } from '../../support/random.ts'

type OptionOf<Field> = Field extends unknown ? keyof Field : never
type Fields = Required<MapConfig>
type FieldOption = OptionOf<
  | Fields['time' | 'latitude' | 'longitude' | 'speed' | 'heading' | 'in_motion']
  | Fields['signals'][number]
  | Fields['fields'][string]
>

/** The fields of a random source: number, altitude, text and boolean are extra fields. */
export type Place =
  | 'time'
  | 'latitude'
  | 'longitude'
  | 'speed'
  | 'heading'
  | 'in_motion'
  | 'signal'
  | 'number'
  | 'altitude'
  | 'text'
  | 'boolean'

export type Options = Readonly<Record<string, unknown>>

/** What the option changes; `own` is the key that the field reads without it. */
export type Change = (random: Random, own: string) => Options

const coordinates = ['latitude', 'longitude'] as const
const numbers = [...coordinates, 'speed', 'heading', 'signal', 'number', 'altitude'] as const
const values = [...numbers, 'in_motion', 'text', 'boolean'] as const

/** Over the keys of random-sources.ts. */
export const conditions = [
  'ok == 1',
  'ok',
  'w == "N"',
  'b > 5',
  '!has(b)',
  'bit(din, 1)',
  'topic.device != "1"',
  'v >= b && u in ["k", "m"]',
]

const zones = ['utc', 'device', 'Europe/Berlin', 'America/New_York']
const localFormats = ['iso', 'datetime', 'words', 'dmy', 'mdy', 'ymd']

function everywhere(places: readonly Place[], change: Change): Partial<Record<Place, Change>> {
  return Object.fromEntries(places.map((place) => [place, change]))
}

function paths(random: Random, own: string): Options {
  const when = random.pick(conditions)
  return {
    path: random.pick([['zz', own], ['b', own], [{ path: 'b', when }, own], [{ path: own, when }], own]),
  }
}

/** A path with other steps than keys. */
function steps(random: Random, own: string): Options {
  const path = random.pick(['track.b[-1]', `$.${own}`])
  return random.chance(0.5) ? paths(random, own) : { path }
}

function previous(random: Random, own: string): Options {
  const expr = random.pick([`previous.${own}`, 'previous.b', `${own} - previous.b`])
  return random.chance(0.3) ? { path: undefined, expr } : steps(random, own)
}

/** Whatever a message has is a word of the table. */
function table(others: readonly unknown[]): Change {
  return (random) => ({ values: { N: others[0], 1: others[1], '*': random.pick(others) } })
}

function units(names: readonly string[]): Change {
  return (random) => ({ unit: random.pick(names) })
}

const angles = ['deg', '1e-7deg', '0.01deg', 'rad']
const ofSpeed = units(['m/s', 'knots', 'km/h'])

export const fieldOptions: Readonly<Record<FieldOption, Partial<Record<Place, Change>>>> = {
  path: {
    ...everywhere(['time', ...values], steps),
    ...everywhere(['signal', 'number', 'text'], previous),
  },
  expr: everywhere(['time', ...values], (random, own) => ({
    path: undefined,
    expr: random.pick([
      own,
      `has(b) ? ${own} : zz`,
      `record["${own}"]`,
      `[${own}, b].filter(x, x != null)[0]`,
      `number(${own}) * 2 - 1`,
      `message.${own}`,
    ]),
  })),
  unit: {
    ...everywhere(coordinates, (random) => ({
      unit: random.pick([...angles, 'ddmm', 'ddmm', 'ddmm', 'dms', 'dms']),
    })),
    heading: (random) => ({ unit: random.pick(angles) }),
    speed: ofSpeed,
    number: ofSpeed,
    signal: units(['m', 'mi', 'km', '125m']),
  },
  scale: everywhere(numbers, (random) => ({ scale: random.pick([0.1, 0.5, 2, -1]) })),
  offset: everywhere(numbers, (random) => ({ offset: random.pick([-1, 0.25, 5]) })),
  type: everywhere(['number', 'text', 'boolean'], (random) => ({
    type: random.pick(['number', 'text', 'boolean']),
  })),
  quantity: everywhere(['signal', 'number', 'altitude'], (random) => ({
    quantity: random.pick(['none', 'temperature', 'battery']),
  })),
  format: {
    time: (random) => ({ format: random.pick(['s', 'ms', 'auto', 'iso', ['iso', 'ms'], 'datetime']) }),
  },
  zone: { time: (random) => ({ format: random.pick(localFormats), zone: random.pick(zones) }) },
  date: {
    time: (random) => ({
      date: { path: 'day' },
      format: random.pick(localFormats),
      zone: random.pick(zones),
    }),
  },
  shift: { time: (random) => ({ shift: random.pick(['7168d', '-2h', '1.5h']) }) },
  missing: { time: () => ({ missing: 'arrival' }) },
  from: { in_motion: () => ({ from: 'speed', above: 20 }) },
  above: { in_motion: (random) => ({ from: 'speed', above: random.pick([0, 5, 60]) }) },
  below: { in_motion: (random) => ({ from: 'speed', above: 60, below: random.pick([0, 5]) }) },
  value_unit: { signal: () => ({ type: 'ANY', value_unit: 'LITERS' }) },
  part: { signal: () => ({ part: 'ENGINE' }) },
  families: { signal: () => ({ families: ['heavy'] }) },
  origin: { signal: () => ({ origin: 'gnss' }) },
  when: everywhere(['time', ...values], (random) => ({ when: random.pick(conditions) })),
  values: {
    ...everywhere(numbers, table([5, 6.5, 7])),
    in_motion: table([true, false]),
    boolean: table([true, false]),
    text: table(['north', 'one']),
  },
  value: {
    ...everywhere(numbers, (random) => ({ path: undefined, value: random.pick([0, 5, 12.5]) })),
    in_motion: (random) => ({ path: undefined, value: random.chance(0.5) }),
    text: () => ({ path: undefined, value: 'always' }),
  },
  absent: everywhere(['time', ...values], (random, own) => ({
    path: random.pick([own, ['b', own]]),
    absent: random.pick([[0, 1, 2, 3], ['N', 1], ['', 5], [true]].slice(0, 3)),
  })),
  hemisphere: {
    latitude: () => ({ hemisphere: { path: 'ns' } }),
    longitude: () => ({ hemisphere: { path: ['zz', 'ew'] } }),
  },
}

/** What is set in one or two fields only has more sources than one for each. */
const timesMin = 6

export const settings = Object.entries(fieldOptions).flatMap(([option, places]) => {
  const all = Object.entries(places) as [Place, Change][]
  const times = Math.ceil(timesMin / all.length)
  return Array.from({ length: times }, () => all.map(([place, change]) => ({ option, place, change }))).flat()
})
