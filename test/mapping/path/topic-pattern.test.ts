import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { capturesIn, compileTopics, covers, parseTopic } from '../../../src/mapping/path/topic-pattern.ts'

const match = (patterns: readonly string[], topic: string) => compileTopics(patterns.map(parseTopic))(topic)

describe('a topic pattern', () => {
  test.each([
    ['telemetry/v1/{device}', 'telemetry/v1/truck-7', ['truck-7']],
    ['telemetry/v1/{device}', 'telemetry/v1/', ['']],
    [
      '/hfp/v2/journey/+/{event}/+/{operator}/{vehicle}/#',
      '/hfp/v2/journey/ongoing/vp/bus/0012/01913/x',
      ['vp', '0012', '01913'],
    ],
    [
      '/hfp/v2/journey/+/{event}/+/{operator}/{vehicle}/#',
      '/hfp/v2/journey/ongoing/vp/tram/0040/00621/2015/2/Itäkeskus (M)/07:23/1291406/0////',
      ['vp', '0040', '00621'],
    ],
    ['a/#', 'a', []],
    ['a/#', 'a/', []],
    ['a/{x}/#', 'a/b', ['b']],
    ['#', 'any/thing', []],
    ['+/+', '/a', []],
    ['{x}/{y}', '/', ['', '']],
    ['/{x}', '/ä b', ['ä b']],
    ['a//b', 'a//b', []],
    ['a/+/b', 'a//b', []],
    ['$SYS/{x}', '$SYS/up', ['up']],
    ['a/{x}', 'a/$x', ['$x']],
  ])('%s takes %s', (pattern, topic, captures) => {
    expect(match([pattern], topic)).toBe(0)
    expect(capturesIn(parseTopic(pattern), topic)).toEqual(captures)
  })

  test.each([
    ['telemetry/v1/{device}', 'telemetry/v1'],
    ['telemetry/v1/{device}', 'telemetry/v1/a/b'],
    ['telemetry/v1/{device}', '/telemetry/v1/a'],
    ['telemetry/v1/{device}', 'Telemetry/v1/a'],
    ['+', '/a'],
    ['a/+', 'a'],
    ['a/#', 'ab'],
    ['#', '$SYS/up'],
    ['+/up', '$SYS/up'],
    ['{x}/up', '$SYS/up'],
    ['ä', 'a\u0308'],
  ])('%s does not take %s', (pattern, topic) => {
    expect(match([pattern ?? ''], topic ?? '')).toBe(-1)
  })

  test('is chosen by the order of the config if several match', () => {
    const patterns = ['a/+/c', 'a/b/#', 'a/{x}/{y}', '#']
    expect(match(patterns, 'a/b/c')).toBe(0)
    expect(match(patterns, 'a/b/d')).toBe(1)
    expect(match(patterns, 'a/e/d')).toBe(2)
    expect(match(patterns, 'z')).toBe(3)
    expect(match(patterns.toReversed(), 'a/b/c')).toBe(0)
  })

  test.each([
    ['', 'must not be empty'],
    ['a\0b', 'NUL'],
    ['a/#/b', 'only as its last level'],
    ['a/b#', '"+" and "#" stand for whole levels'],
    ['a/b+', '"+" and "#" stand for whole levels'],
    ['a/veh-{id}', 'a capture is a whole level'],
    ['a/{1x}', 'a capture is a whole level'],
    ['a/{x', 'a capture is a whole level'],
    ['a/{}', 'a capture is a whole level'],
    ['{x}/{x}', 'names the capture {x} twice'],
    ['a/{clientid}', 'templates use that name for the sender'],
  ])('that reads %j is refused', (pattern, message) => {
    expect(() => parseTopic(pattern)).toThrow(message)
  })

  test('agrees with a simple implementation of the MQTT rules, for any patterns and topics', () => {
    const level = fc.constantFrom('', 'a', 'b', '$s')
    const filter = fc
      .tuple(fc.array(fc.oneof(level, fc.constant('+')), { minLength: 1, maxLength: 4 }), fc.boolean())
      .map(([levels, rest]) => [...levels, ...(rest ? ['#'] : [])].join('/'))
      .filter((text) => text !== '')
    const topic = fc.array(level, { minLength: 1, maxLength: 5 }).map((levels) => levels.join('/'))
    fc.assert(
      fc.property(fc.array(filter, { minLength: 1, maxLength: 6 }), topic, (filters, name) => {
        expect(match(filters, name)).toBe(filters.findIndex((each) => matchesPlainly(each, name)))
      }),
      { numRuns: 3000 },
    )
  })

  test('covers another pattern only if it matches all topics of it', () => {
    const level = fc.constantFrom('a', 'b', '+', '$s')
    const filter = fc
      .tuple(fc.array(level, { minLength: 1, maxLength: 3 }), fc.boolean())
      .map(([levels, rest]) => [...levels, ...(rest ? ['#'] : [])].join('/'))
    const topic = fc.array(fc.constantFrom('a', 'b', '$s'), { minLength: 1, maxLength: 4 })
    fc.assert(
      fc.property(filter, filter, fc.array(topic, { maxLength: 30 }), (earlier, later, topics) => {
        fc.pre(covers(parseTopic(earlier), parseTopic(later)))
        for (const levels of topics) {
          const name = levels.join('/')
          expect(!matchesPlainly(later, name) || matchesPlainly(earlier, name)).toBe(true)
        }
      }),
      { numRuns: 1000 },
    )
    expect(covers(parseTopic('a/#'), parseTopic('a'))).toBe(true)
    expect(covers(parseTopic('a/{x}'), parseTopic('a/+'))).toBe(true)
    expect(covers(parseTopic('a/{x}'), parseTopic('a/#'))).toBe(false)
    expect(covers(parseTopic('#'), parseTopic('$SYS/a'))).toBe(false)
  })
})

/** MQTT 3.1.1, section 4.7, word by word. */
function matchesPlainly(filter: string, topic: string): boolean {
  const wanted = filter.split('/')
  const levels = topic.split('/')
  if (topic.startsWith('$') && (wanted[0] === '+' || wanted[0] === '#')) return false
  for (const [index, want] of wanted.entries()) {
    if (want === '#') return levels.length >= index
    if (index >= levels.length) return false
    if (want !== '+' && want !== levels[index]) return false
  }
  return wanted.length === levels.length
}
