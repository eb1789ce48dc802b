import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createSparkplugDecoder } from '../../../src/mapping/sparkplug/sparkplug.ts'
import { sparkplugPayload, types, type MetricOf } from '../../support/sparkplug-payload.ts'

const topicOf = (what: string) => `spBv1.0/Depot7/${what}`

function decodeOne(what: string, bytes: Buffer) {
  const decoded = createSparkplugDecoder({ source: 'yard' }).forTopic(topicOf(what))(bytes, 0, true)
  return decoded.kind === 'refused' ? `${decoded.reason}: ${decoded.detail}` : decoded.kind
}

describe('bytes that are not a payload', () => {
  const long = Buffer.alloc(1024 * 1024, 0)
  test.each([
    ['a text', Buffer.from('{"state":1}'), 'TRUNCATED: A field goes beyond the end of the message'],
    ['a length beyond the end', Buffer.from('12ffffff7f00', 'hex'), 'TRUNCATED: A field goes beyond'],
    [
      'a length beyond all sense',
      Buffer.from('12ffffffff0f', 'hex'),
      'BAD_FRAME: The message is not a Sparkplug B payload',
    ],
    ['a number that never ends', Buffer.alloc(200, 0xff), 'BAD_FRAME'],
    ['groups in groups in groups', Buffer.alloc(100_000, 0x0b), 'BAD_FRAME'],
    [
      'half a million metrics',
      long.fill(Buffer.from([0x12, 0x00])),
      'TOO_MANY: The message has more than 20000',
    ],
    ['properties in properties', nested(300), 'value'],
  ])('%s', (_, bytes, sentence) => {
    expect(decodeOne('NBIRTH/GW-1', bytes)).toContain(sentence)
  })

  test('zero bytes are an empty message', () => {
    expect(decodeOne('NDATA/GW-1', Buffer.alloc(0))).toBe('empty')
  })

  test('a truncated payload is refused, or gives complete metrics only', () => {
    const metrics = [
      { name: 'GPS/Latitude', type: types.double, alias: 1, double: 51.3 },
      { name: 'note', type: types.string, text: 'of some length' },
    ]
    const bytes = sparkplugPayload({ ts: 1_767_085_201_000, metrics, seq: 7 })
    for (let length = 1; length < bytes.length; length += 1)
      expect(decodeOne('NBIRTH/GW-1', bytes.subarray(0, length))).toMatch(/^(?:TRUNCATED|value)/)
  })

  /** A metric whose properties hold properties, so many levels deep. */
  function nested(levels: number): Buffer {
    let inner: Buffer = Buffer.alloc(0)
    for (let level = 0; level < levels; level += 1) inner = sparkplugPayload({ body: inner, ts: 1 })
    return sparkplugPayload({ ts: 1, body: inner, metrics: [{ name: 'a', type: types.int8, int: 1 }] })
  }
})

describe('births beyond the bound', () => {
  const birth = sparkplugPayload({
    seq: 0,
    metrics: [{ name: 'a', type: types.double, alias: 1, double: 1 }],
  })

  test('the oldest are forgotten, in memory and in the store', () => {
    const decoder = createSparkplugDecoder({ source: 'yard', nodesMax: 3 })
    const stored = new Set<string>()
    for (let index = 0; index < 10; index += 1) {
      const { writes = [] } = decoder.forTopic(topicOf(`NBIRTH/GW-${index}`))(birth, 0, true)
      for (const { key, value } of writes) if (value) stored.add(key)
      for (const { key, value } of writes) if (!value) stored.delete(key)
    }
    expect([...stored]).toEqual([7, 8, 9].map((index) => `sparkplug/yard/Depot7/GW-${index}`))
    expect(decoder.counters()).toMatchObject({ nodes: 3, evictions: 7 })
  })

  test('a single birth that is too large is refused', () => {
    const decoder = createSparkplugDecoder({ source: 'yard', bytesMax: 5000 })
    const metrics = Array.from({ length: 20 }, (_, index) => ({
      name: `metric ${index}`,
      type: types.int8,
      int: 1,
    }))
    const decoded = decoder.forTopic(topicOf('NBIRTH/GW-1'))(sparkplugPayload({ metrics }), 0, true)
    expect(decoded).toMatchObject({ kind: 'refused', reason: 'TOO_MANY' })
    expect(decoded).not.toHaveProperty('writes')
  })

  test('unlimited devices of one node and very long names are refused', () => {
    const decoder = createSparkplugDecoder({ source: 'yard', bytesMax: 20_000 })
    const kinds = Array.from(
      { length: 100 },
      (_, index) => decoder.forTopic(topicOf(`DBIRTH/GW-1/d${index}`))(birth, 0, true).kind,
    )
    expect(kinds).toContain('value')
    expect(kinds.at(-1)).toBe('refused')
    expect(decoder.counters().bytes).toBeLessThanOrEqual(20_000)
    for (const what of [`NBIRTH/${'n'.repeat(600)}`, `DBIRTH/GW-2/${'d'.repeat(600)}`])
      expect(decoder.forTopic(topicOf(what))(birth, 0, true)).toMatchObject({
        kind: 'refused',
        reason: 'TOO_MANY',
      })
  })
})

describe('for any message in any order', () => {
  const verbs = [
    'NBIRTH/a',
    'NDATA/a',
    'NDEATH/a',
    'DBIRTH/a/b',
    'DDATA/a/b',
    'DDEATH/a/b',
    'NBIRTH/c',
    'DDATA/c/d',
  ]
  const metric = fc
    .record({
      name: fc.constantFrom('GPS/Latitude', 'GPS/Longitude', 'bdSeq', 'x', '__proto__', undefined),
      alias: fc.constantFrom(0, 1, 2, 2n ** 64n - 1n, undefined),
      ts: fc.constantFrom(1, 2, 500, 5000, 2n ** 63n, undefined),
      type: fc.constantFrom(0, 1, 4, 8, 9, 10, 11, 12, 16, 17, 99, undefined),
      historical: fc.constantFrom(true, undefined),
      null: fc.constantFrom(true, undefined, undefined),
      value: fc.constantFrom<MetricOf>(
        { int: 200 },
        { long: 2n ** 64n - 2n },
        { float: 1.1 },
        { double: Number.NaN },
        { double: 9.25 },
        { bool: true },
        { text: 'word' },
        { raw: Buffer.from([7]) },
        {},
      ),
    })
    .map(({ value, ...rest }) => {
      const present = Object.entries(rest).filter(([, one]) => one !== undefined)
      return { ...(Object.fromEntries(present) as MetricOf), ...value }
    })
  const noise = fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes))
  const payload = fc
    .record({ ts: fc.constantFrom(0, 1000), seq: fc.nat(300), metrics: fc.array(metric, { maxLength: 5 }) })
    .map(sparkplugPayload)
  const spoiled = fc
    .tuple(payload, fc.nat(80), fc.nat(255))
    .map(([bytes, at, byte]) => Buffer.from(bytes.with(at % Math.max(1, bytes.length), byte)))
    .filter((bytes) => bytes.length > 0)
  const bytes = fc.oneof({ arbitrary: payload, weight: 4 }, noise, { arbitrary: spoiled, weight: 2 })

  test('thousands of messages cause no exception and stay within the bounds, and the births can be restored', () => {
    const options = { source: 'yard', nodesMax: 2, bytesMax: 6000 }
    const decoder = createSparkplugDecoder(options)
    const stored = new Map<string, Buffer>()
    const kinds = new Map<string, number>()
    let count = 0
    fc.assert(
      fc.property(fc.constantFrom(...verbs), bytes, (verb, message) => {
        count += 1
        const decoded = decoder.forTopic(topicOf(verb))(message, count, count % 5 !== 0)
        kinds.set(decoded.kind, (kinds.get(decoded.kind) ?? 0) + 1)
        for (const { key, value } of decoded.writes ?? []) {
          if (value) stored.set(key, value)
          else stored.delete(key)
        }
        const { nodes, devices, bytes } = decoder.counters()
        return nodes <= 2 && bytes <= 6000 && devices <= 2
      }),
      { numRuns: 3000 },
    )
    expect([...kinds.keys()].toSorted()).toEqual(['empty', 'ignored', 'refused', 'value'])
    const next = createSparkplugDecoder(options)
    next.restore(stored)
    const { nodes, devices, bytes: size } = decoder.counters()
    expect(next.counters()).toMatchObject({ devices, damaged: 0 })
    expect(nodes === 0 || size > 0).toBe(true)
  })
})
