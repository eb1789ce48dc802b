import { describe, expect, test } from 'vitest'
import type { Message } from '../../src/domain/message.ts'
import { createCollector, type ObservedTraffic } from '../../src/learn/learn.ts'

const sender = { clientId: 'learn', userName: null, certificateName: null, identity: null }

function heard(sent: readonly (readonly [topic: string, message?: string | Buffer])[]): ObservedTraffic {
  const collector = createCollector()
  for (const [index, [topic, message = '{}']] of sent.entries()) {
    const bytes = Buffer.from(message)
    const one: Message = { topic, bytes, qos: 0, retain: false, dup: false, sender, arrivedAt: index }
    collector.take(one)
  }
  return collector.traffic()
}

describe('topics are grouped by shape', () => {
  test.each([
    ['teltonika/864636060000001/data', 'teltonika/+/data'],
    [
      'application/6f1c4e6e-3c0f-4c9b-9a8e-0e6c6f8d9d3e/device/70b3d57050011422/event/up',
      'application/+/device/+/event/up',
    ],
    ['msh/EU_868/2/json/LongFast/!7c5acfa4', 'msh/+/2/json/LongFast/+'],
    ['fleet/truck-7/v1/up', 'fleet/+/v1/up'],
    ['fleet/00:1b:63:84:45:e6', 'fleet/+'],
    ['telemetry/v1/WDB96340310123456', 'telemetry/v1/+'],
    ['/hfp/v2/journey/ongoing/vp/bus/0012/01234/', '/hfp/v2/journey/ongoing/vp/bus/+/+/'],
    ['N/c0619ab4/gps/0/Position', 'N/+/gps/0/Position'],
    ['fleet/truck0/data', 'fleet/+/data'],
    ['fleet/Bus7/data', 'fleet/+/data'],
    ['fleet/v1/data1', 'fleet/v1/data1'],
    ['teltonika/codec8/x', 'teltonika/codec8/x'],
  ])('%s is %s', (topic, filter) => {
    expect(heard([[topic]]).shapes[0]?.filter).toBe(filter)
  })

  test('a level is a name too when many topics differ only there and their messages are alike', () => {
    const people = ['anna', 'bob', 'eve', 'joe', 'kim'].map(
      (name, index) => [`owntracks/${name}/phone`, `{"lat":1,"lon":2,"tst":${index}}`] as const,
    )
    const { shapes } = heard([...people, ['owntracks/anna/card', '{"face":""}']])
    expect(shapes.map(({ filter, messages, topics }) => ({ filter, messages, topics }))).toEqual([
      { filter: 'owntracks/+/phone', messages: 5, topics: 5 },
      { filter: 'owntracks/anna/card', messages: 1, topics: 1 },
    ])
    expect(shapes[0]?.last?.topic).toBe('owntracks/kim/phone')
  })

  const lat = '{"lat":1,"lon":2,"tst":3}'
  test.each<[name: string, sent: Record<string, string>, filters: string[]]>([
    ['alike', { 'tracks/anna/phone': lat, 'tracks/bob/phone': lat }, ['tracks/+/phone']],
    ['with numbers', { 'fleet/k7/data': lat, 'fleet/k8/data': lat }, ['fleet/+/data']],
    ['that are numbers', { 'trucks/7/pos': lat, 'trucks/12/pos': lat }, ['trucks/+/pos']],
    ['of versions', { 'van/v1/up': lat, 'van/v2/up': lat }, ['van/v1/up', 'van/v2/up']],
    ['of kinds', { 'van/position': lat, 'van/status': lat }, ['van/position', 'van/status']],
    ['with other keys', { 'van/a': lat, 'van/b': '{"lat":1,"on":2,"x":3}' }, ['van/a', 'van/b']],
    ['with one key', { 'van/alpha': '{"a":1}', 'van/beta': '{"a":1}' }, ['van/alpha', 'van/beta']],
  ])('topics %s are one shape or several', (_name, sent, filters) => {
    expect(heard(Object.entries(sent)).shapes.map(({ filter }) => filter)).toEqual(filters)
  })

  test('topics with single values keep their names', () => {
    const values = ['lat', 'lon', 'speed', 'soc', 'odo', 'hours'].map((name) => [`van/${name}`, '1'] as const)
    expect(heard(values).shapes).toHaveLength(6)
  })
})

describe('memory is bounded', () => {
  test('with any number of topics and shapes', () => {
    const collected = heard(
      Array.from(
        { length: 12_000 },
        (_, index) => [`a/${100_000 + index}/${'x'.repeat(index % 600)}`] as const,
      ),
    )
    expect(collected).toMatchObject({ messages: 12_000, topics: 10_000, moreTopics: true })
    expect(collected.shapes.length).toBeLessThanOrEqual(500)
    expect(collected.unshaped).toBe(
      12_000 - collected.shapes.reduce((sum, { messages }) => sum + messages, 0),
    )
  })

  test('the first messages and the last one of a shape are kept', () => {
    const { shapes } = heard(Array.from({ length: 100 }, (_, index) => ['a/b', `{"n":${index}}`] as const))
    expect(shapes[0]?.samples).toHaveLength(40)
    expect(shapes[0]?.last?.bytes.toString()).toBe('{"n":99}')
  })

  test('a large message is counted and not kept', () => {
    const { shapes } = heard([['a', Buffer.alloc(70_000)]])
    expect(shapes[0]).toMatchObject({ messages: 1, oversized: 1, samples: [], last: null })
  })

  test('the bytes of all kept messages are bounded', () => {
    const { shapes } = heard(
      Array.from(
        { length: 1000 },
        (_, index) => [`a/${'b'.repeat(index % 400)}`, Buffer.alloc(60_000)] as const,
      ),
    )
    const kept = new Set(shapes.flatMap(({ samples, last }) => (last ? [...samples, last] : samples)))
    expect(kept.size * 60_000).toBeLessThanOrEqual(32 * 1024 * 1024)
  })
})
