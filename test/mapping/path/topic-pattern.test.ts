import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { rowsBeside } from '../../support/case-rows.ts'
import { capturesIn, compileTopics, covers, parseTopic } from '../../../src/mapping/path/topic-pattern.ts'

const rows = rowsBeside(import.meta.filename) as {
  takes: [pattern: string, topic: string, captures: string[]][]
  takes_not: [pattern: string, topic: string][]
  refused: Record<string, string>
}

const match = (patterns: readonly string[], topic: string) => compileTopics(patterns.map(parseTopic))(topic)

describe('a topic pattern', () => {
  test.each(rows.takes)('%s takes %s', (pattern, topic, captures) => {
    expect(match([pattern], topic)).toBe(0)
    expect(capturesIn(parseTopic(pattern), topic)).toEqual(captures)
  })

  test.each(rows.takes_not)('%s does not take %s', (pattern, topic) => {
    expect(match([pattern], topic)).toBe(-1)
  })

  test('is chosen by the order of the config if several match', () => {
    const patterns = ['a/+/c', 'a/b/#', 'a/{x}/{y}', '#']
    expect(match(patterns, 'a/b/c')).toBe(0)
    expect(match(patterns, 'a/b/d')).toBe(1)
    expect(match(patterns, 'a/e/d')).toBe(2)
    expect(match(patterns, 'z')).toBe(3)
    expect(match(patterns.toReversed(), 'a/b/c')).toBe(0)
  })

  test.each(Object.entries(rows.refused))('that reads %j is refused', (pattern, message) => {
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
