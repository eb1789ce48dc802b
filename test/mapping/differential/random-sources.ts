// random-sources.ts: sources with random options of fields, alone and together, and templates of their
// messages. Every source has one option that it is made for, so that no option is left to chance.

import { compileSources } from '../../../src/mapping/compile/compile.ts'
import { configOf, type World } from '../../support/mapping-world.ts'
import type { Random } from '../../support/random.ts'
import { conditions, settings, type Options, type Place } from './field-options.ts'
import { Spelled } from './hostile-json.ts'
import { counterOf, decimals, latitude, longitude, timeOf } from './template-values.ts'
import type { Trial } from './trial.ts'

type Setting = (typeof settings)[number]

const fields: Readonly<Record<Place, Options>> = {
  time: { path: 't', format: 'ms' },
  latitude: { path: 'lat' },
  longitude: { path: 'lon' },
  speed: { path: 'v' },
  heading: { path: 'c' },
  in_motion: { path: 'm' },
  signal: { type: 'OBD_LIFETIME_ODOMETER', path: 'odo' },
  number: { path: 'load', type: 'number' },
  altitude: { path: 'alt', type: 'number' },
  text: { path: 'w', type: 'text' },
  boolean: { path: 'ok', type: 'boolean' },
}

/** Besides the one that a source is made for. Of a signal that is not sent no option would be read. */
const others = settings.filter(({ option }) => option !== 'families' && option !== 'origin')

const triesMax = 100

/** How many sources it takes to have each option in each field once. */
export const settingsCount = settings.length

/** One or two sources for the setting of this number, with messages for them. */
export function randomTrial(number: number, random: Random): Trial {
  const setting = settings[number % settings.length]!
  const isShared = random.chance(0.15)
  const when = isShared || random.chance(0.1) ? { when: random.pick(conditions) } : {}
  const one = randomSource('one', setting, when, random)
  const sharing = isShared ? [randomSource('other', setting, {}, random)] : []
  return {
    name: setting.option,
    source: one.source,
    others: sharing.map(({ source }) => source),
    world: worldOf(random),
    topics: ['r/1', 'r/2'],
    template: templateOf([one, ...sharing].map(({ set }) => set)),
  }
}

function worldOf(random: Random): World {
  const jumps = random.chance(0.5) ? { odometer: { action: 'off', jumps: 'off' } } : undefined
  return {
    table: 'device,model,zone\n1,FMB640,Europe/Berlin\n2,,\n',
    clockOffsetMs: 0,
    plausibility: jumps,
  }
}

type Fields = typeof fields
type RandomSource = { source: Record<string, unknown>; set: Fields }

function randomSource(name: string, setting: Setting, rest: Options, random: Random): RandomSource {
  for (let tries = 0; tries < triesMax; tries += 1) {
    const more = Array.from({ length: random.pick([0, 0, 0, 1, 2]) }, () => random.pick(others))
    const set = { ...fields }
    for (const { place, change } of [...more, setting])
      set[place] = { ...set[place], ...change(random, String(fields[place]['path'])) }
    const source = { name, topic: 'r/{device}', ...rest, ...sourceOf(set, random) }
    if (isSound(source)) return { source, set }
  }
  throw new Error(`no source with ${setting.option} of ${setting.place} compiles`)
}

function sourceOf({ signal, number, altitude, text, boolean, ...map }: Fields, random: Random) {
  const hasOrigin = signal['origin'] !== undefined
  return {
    ...(signal['families'] !== undefined && { families: { heavy: ['FMB6*'] } }),
    ...(hasOrigin && random.chance(0.5) && { origins: ['gnss'] }),
    ...(random.chance(0.06) && { each: { expr: 'zip(track)' } }),
    map: {
      ...map,
      signals: [signal, { type: 'X', path: 'x' }],
      fields: { load: number, 'gps.altitude': altitude, text, door: boolean },
    },
  }
}

/** Options that exclude each other are a problem of the config. */
function isSound(source: Options): boolean {
  try {
    return compileSources(configOf([source])).problems.length === 0
  } catch (error) {
    if (error instanceof Error && error.name.includes('ZodError')) return false
    throw error
  }
}

/** Numbers with few values, so that bits and tables find what they look for. */
const small = (random: Random) => (random.chance(0.5) ? random.below(12) : decimals(random, 0, 90, 1))

/** With more of them nearly every message would be parsed. */
const oddChance = 0.03

/** Of messages for one of the sources. */
function templateOf(sets: readonly Fields[]): Trial['template'] {
  return (clock, random) => {
    const { time, latitude: north, longitude: east } = random.pick(sets)
    const [day, clockText] = writtenTime(time, timeOf(clock, random), random)
    const mostly = (usual: readonly unknown[], odd: readonly unknown[]) => (one: Random) =>
      one.pick(one.chance(oddChance) ? odd : usual)
    return {
      t: mostly([clockText], [null]),
      day: () => day,
      lat: (one) => coordinate(latitude(one), north, 'N', one),
      lon: (one) => coordinate(longitude(one), east, 'E', one),
      ns: mostly(['N', 'S'], ['south', 'E', null]),
      ew: mostly(['E', 'W'], ['west', 'N', '']),
      v: small,
      c: (one) => (one.chance(oddChance) ? '12,5' : one.below(361)),
      m: mostly([true, false, 1, 0], ['on', 'N', 6, null]),
      odo: (one) => counterOf(clock, one, 184_223, 60),
      x: (one) => one.below(100),
      load: small,
      alt: small,
      w: mostly(['N', 'DRIVING', '1'], ['', 1, null]),
      ok: mostly([true, false, 1, 0], ['yes', null]),
      b: mostly([null, 0, 1, 5, 7.25, 8], ['3.50', 'x']),
      u: mostly(['k', 'm'], ['other', null]),
      din: (one) => one.below(4096),
      track: () => ({ t: [clockText], lat: [50.5], lon: [7.5], v: [5], odo: [1], b: [random.below(9)] }),
    }
  }
}

function coordinate(degrees: number, { unit }: Options, letter: string, random: Random): unknown {
  const whole = Math.trunc(degrees)
  const minutes = ((degrees - whole) * 60).toFixed(3)
  switch (random.chance(oddChance) ? random.pick(['dms', 'ddmm', '1e-7deg']) : unit) {
    case '1e-7deg':
      return Math.round(degrees * 1e7)
    case '0.01deg':
      return Math.round(degrees * 100)
    case 'rad':
      return decimals(random, 0.2, 0.9, 6)
    case 'dms':
      return random.chance(0.8) ? `${letter} ${whole} ${minutes}` : degrees
    case 'ddmm':
      // Near the equator and in the west of London both readings are possible.
      if (random.chance(0.5)) return decimals(random, 1, 59, 3)
      return `${whole}${minutes.padStart(6, '0')}${random.pick([letter, ''])}`
    default:
      return random.chance(0.2) ? new Spelled(degrees.toFixed(6)) : degrees
  }
}

/** Date and time of day, or an empty text and both together. */
function writtenTime({ format, date }: Options, moment: number, random: Random): [unknown, unknown] {
  const first = String([format].flat()[0])
  const text = new Date(moment).toISOString()
  const [day = '', clock = ''] = text.split(/[TZ]/)
  const [year = '', month = '', dayOfMonth = ''] = day.split('-')
  const days: Readonly<Record<string, string>> = {
    dmy: `${dayOfMonth}.${month}.${year}`,
    mdy: `${month}/${dayOfMonth}/${year}`,
    ymd: `${year}/${month}/${dayOfMonth}`,
    words: `${dayOfMonth} Jan ${year}`,
  }
  const dated = `${days[first] ?? day} ${clock.slice(0, random.pick([8, 12]))}`
  if (date !== undefined && random.chance(0.2)) return [days[first] ?? day, dated]
  if (date !== undefined) return [days[first] ?? day, clock.slice(0, 8)]
  if (first === 's') return ['', moment / 1000]
  if (first === 'datetime') return ['', dated]
  if (first === 'iso') return ['', random.pick([text, text.slice(0, 19)])]
  return ['', days[first] === undefined ? moment : dated]
}
