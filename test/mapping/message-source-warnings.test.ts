import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compileSources } from '../../src/mapping/compile/compile.ts'
import { messageSourceWarnings, openMapping } from '../../src/mapping/mapping.ts'
import { compileTopics, overlaps, parseTopic } from '../../src/mapping/path/topic-pattern.ts'
import { configOf, messageOf, openMapperOf, truckSource, verdictOf } from '../support/mapping-world.ts'

const reading = { ts: 1_750_000_000_000, lat: 48.8566, lon: 2.3522 }
const source = (name: string, rest: Record<string, unknown> = {}) => truckSource({}, { name, ...rest })

describe('`from` of a source', () => {
  const sources = [source('depot', { from: ['depot'] }), source('own', { from: ['broker'] }), source('rest')]

  test('decides who takes a message of a topic that several sources have', async () => {
    const mapper = (await openMapping(configOf(sources))).open()
    const takenBy = (from?: string) => {
      const result = mapper.map(messageOf(reading, { ...(from && { from }) }))
      return result.kind === 'payloads' ? result.source : verdictOf(result)
    }
    // Twice: the second time the topic is known.
    for (let time = 0; time < 2; time += 1)
      expect([takenBy('depot'), takenBy(), takenBy('broker'), takenBy('other')]).toEqual([
        'depot',
        'own',
        'own',
        'rest',
      ])
  })

  test('leaves a message from elsewhere to nobody, and says where it came from', async () => {
    const mapper = (await openMapping(configOf([source('depot', { from: ['depot'] })]))).open()
    expect(mapper.map(messageOf(reading, { from: 'other' }))).toMatchObject({
      reason: 'NO_SOURCE',
      detail: expect.stringContaining(
        'No source takes the topic "telemetry/v1/truck-7" from "other". Taken are',
      ),
    })
    expect(verdictOf(mapper.map(messageOf(reading)))).toBe('NO_SOURCE')
  })

  test('does not matter for a message that a person tries', () => {
    expect(verdictOf(openMapperOf([source('depot', { from: ['depot'] })]).map(messageOf(reading)))).toBe(
      'payloads',
    )
  })

  test.each([
    [['a'], ['a'], true],
    [['a', 'b'], ['b'], true],
    [undefined, ['a'], true],
    [['a'], undefined, false],
    [['a'], ['b'], false],
  ])('%j above %j: the second one is never reached: %s', (first, second, isHidden) => {
    const { problems } = compileSources(
      configOf([source('one', { from: first }), source('two', { from: second })]),
    )
    expect(problems.map(({ message }) => message.slice(0, 16))).toEqual(isHidden ? ['is never reached'] : [])
  })
})

describe('check says where sources and bridges do not fit', () => {
  const depot = { name: 'depot', topics: ['telemetry/v1/+', 'site/#'] }
  const site = source('site', { topic: 'site/{device}/gps' })
  const warningsOf = (sources: readonly unknown[], bridges = [depot], listens = false) =>
    messageSourceWarnings(configOf(sources).sources, bridges, listens).map(({ what }) => what)

  test('nothing where every topic has a source and every source a topic', () => {
    expect(warningsOf([source('trucks'), site])).toEqual([])
    expect(warningsOf([source('own', { topic: 'x/{device}' })], [], true)).toEqual([])
  })

  test('a source whose topics nobody delivers', () => {
    const vans = source('vans', { topic: ['vans/{device}', 'telemetry/v1/{device}'] })
    expect(warningsOf([vans, site])).toEqual([
      'The source "vans" gets no messages on "vans/{device}": nothing in ingest delivers them to it.',
    ])
    expect(warningsOf([vans, site], [depot], true)).toEqual([])
    const limited = source('vans', { topic: 'vans/{device}', from: ['depot'] })
    expect(warningsOf([limited, source('trucks'), site], [depot], true)).toHaveLength(1)
    const own = source('own', { topic: 'telemetry/v1/{device}', from: ['broker'] })
    expect(warningsOf([own, source('trucks'), site])).toEqual([
      expect.stringMatching(/^The source "own" gets no/),
    ])
  })

  test('not a topic that the source ignores, and one of several topics of a preset only if none is delivered', () => {
    const rest = { topic: ['telemetry/v1/{device}', 'telemetry/v2/{device}'] }
    expect(warningsOf([source('trucks', { ...rest, exclude: ['telemetry/v2/+'] }), site])).toEqual([])
    expect(warningsOf([source('trucks', { ...rest, preset: 'p' }), site])).toEqual([])
    expect(warningsOf([source('trucks', rest), site])).toHaveLength(1)
    const other = { topic: ['x/{device}', 'y/{device}'], preset: 'p' }
    expect(warningsOf([source('trucks'), source('x', other), site])).toHaveLength(2)
  })

  test('a topic of a bridge that no source takes', () => {
    expect(warningsOf([source('trucks', { from: ['depot'] })])).toEqual([
      'Bridge "depot": no source takes messages on "site/#"; they become dead letters.',
    ])
    expect(warningsOf([source('trucks'), { ...site, from: ['broker'] }], [depot], true)).toHaveLength(1)
  })

  test.each(['{clientid}', '{username}', '{certificate}', '{identity}'])(
    'a device that is named by %s, which a bridge does not know',
    (name) => {
      const trucks = (rest: object) => [source('trucks', { device: name, ...rest }), site]
      expect(warningsOf(trucks({}))).toEqual([
        `The source "trucks" names devices by ${name}, which messages of the bridge "depot" do not have; they become dead letters (NO_DEVICE).`,
      ])
      expect(warningsOf(trucks({ device: [{ path: 'imei' }, name] }))[0]).toContain(
        'those without another name',
      )
      expect(warningsOf([...trucks({ from: ['broker'] }), source('rest')], [depot], true)).toEqual([])
      expect(warningsOf([source('trucks', { topic: 'own/{d}', device: name })], [], true)).toEqual([])
    },
  )

  test('an identity that nobody checks', () => {
    expect(warningsOf([source('trucks', { identity: 'device' }), site])).toEqual([
      expect.stringMatching(/has `identity`, which is not checked for messages of the bridge "depot"/),
    ])
  })
})

describe('two patterns overlap', () => {
  test.each([
    ['a/+', 'a/b', true],
    ['a/#', 'a', true],
    ['a/#', 'a/b/c', true],
    ['a/+', 'a', false],
    ['#', '$SYS/x', false],
    ['+/x', '$SYS/x', false],
    ['$SYS/#', '$SYS/+/x', true],
    ['+/b', 'a/{x}', true],
    ['+/b', 'a/c', false],
  ])('%s and %s: %s', (one, other, expected) => {
    expect(overlaps(parseTopic(one), parseTopic(other))).toBe(expected)
    expect(overlaps(parseTopic(other), parseTopic(one))).toBe(expected)
  })

  test('if a topic matches both', () => {
    const level = fc.constantFrom('a', 'b', '+', '$c')
    const pattern = fc
      .tuple(fc.array(level, { minLength: 1, maxLength: 3 }), fc.boolean())
      .map(([levels, rest]) => [...levels, ...(rest ? ['#'] : [])].join('/'))
    const topic = fc.array(fc.constantFrom('a', 'b', '$c'), { minLength: 1, maxLength: 4 })
    const matches = (text: string, on: string) => compileTopics([parseTopic(text)])(on) === 0
    const checked = fc.check(
      fc.property(pattern, pattern, topic, (one, other, levels) => {
        const on = levels.join('/')
        return !matches(one, on) || !matches(other, on) || overlaps(parseTopic(one), parseTopic(other))
      }),
    )
    expect(checked.counterexample).toBeNull()
  })
})
