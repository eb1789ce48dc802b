import { describe, expect, test } from 'vitest'
import { bridgesSchema } from '../../../src/ingest/bridge-kinds.ts'
import { amqpBridgeSchema, amqpWarnings } from '../../../src/ingest/amqp/amqp-config.ts'
import { parseRabbitBridge } from '../../support/rabbit-bridges.ts'

const bridge = {
  name: 'rabbit',
  url: 'amqp://127.0.0.1:5672',
  queue: { prefix: 'fleet' },
  bind: { keys: ['t.#'] },
}

/** The first problem, as `option: message`. */
function problemOf(more: object): string {
  const { error } = amqpBridgeSchema.safeParse({ ...bridge, ...more })
  const issue = error?.issues[0]
  return issue === undefined ? '' : `${issue.path.join('.')}: ${issue.message}`
}

describe('a bridge to RabbitMQ', () => {
  test('has nodes of one cluster, with default ports', () => {
    expect(parseRabbitBridge({ ...bridge, url: 'amqp://rabbit.example.com' }).nodes).toEqual([
      { scheme: 'amqp', host: 'rabbit.example.com', port: 5672 },
    ])
    expect(parseRabbitBridge({ ...bridge, url: ['amqps://a', 'amqps://[::1]:7000'] }).nodes).toEqual([
      { scheme: 'amqps', host: 'a', port: 5671 },
      { scheme: 'amqps', host: '::1', port: 7000 },
    ])
  })

  test.each([
    [{ url: 'amqp://user:pw@host' }, /^url: must be amqp/],
    [{ url: ['amqp://a', 'amqps://b'] }, /^url: must have one scheme/],
    [{ url: 'amqp://host:0' }, /^url: must have a port/],
    [{ url: ['amqp://a', 'http://b'] }, /^url.1: must be amqp/],
    [{ tls: { server_name: 'x' } }, /^tls: is not allowed for amqp/],
    [{ password: 'x' }, /^password: needs username/],
    [{ partition_by: 'level:3' }, /^partition_by: must be topic/],
    [{ bind: { keys: ['t/+/gps'] } }, /^bind.keys.0: is a key of AMQP/],
    [{ topics: ['t/{device}/{device}'] }, /^topics.0: may have \{device\} once/],
    [{ topics: ['t/#/x'] }, /^topics.0: may have/],
    [{ queue: { prefix: 'a b' } }, /^queue.prefix: must have/],
  ])('is refused with %j', (more, expected) => {
    expect(problemOf(more)).toMatch(expected)
  })

  test('is the kind that an error means, also among the others', () => {
    const { error } = bridgesSchema.safeParse([{ ...bridge, url: 'amqp://user:pw@host' }])
    const [mqtt, amqp] = error!.issues[0]!.code === 'invalid_union' ? error!.issues[0]!.errors : []
    const isOther = (issues: typeof mqtt) =>
      issues!.some((issue) => issue.code === 'custom' && issue.params?.['otherKind'] === true)
    expect([isOther(mqtt), isOther(amqp)]).toEqual([true, false])
  })

  test('has its topics from the keys, and without braces for others', () => {
    const topicsOf = (more: object) => bridgesSchema.parse([{ ...bridge, ...more }])[0]!.topics
    expect(topicsOf({})).toEqual(['t/#'])
    expect(topicsOf({ topics: ['t/{device}/gps'] })).toEqual(['t/+/gps'])
  })

  test('partitions by a header where it names one', () => {
    expect(parseRabbitBridge(bridge).partitionBy).toEqual({ kind: 'topic' })
    const { partitionBy } = parseRabbitBridge({ ...bridge, partition_by: 'header:device' })
    expect(partitionBy).toEqual({ kind: 'header', header: 'device' })
  })

  test('warns of a password in clear text, and of bindings that nobody checks', () => {
    const warningsOf = (more: object) =>
      amqpWarnings(amqpBridgeSchema.parse({ ...bridge, ...more }), (host) => host === '127.0.0.1').length
    expect(warningsOf({ provision: true })).toBe(0)
    expect(warningsOf({})).toBe(1)
    expect(warningsOf({ provision: true, username: 'gw', password: 'x', url: 'amqp://10.0.0.1' })).toBe(1)
    expect(warningsOf({ provision: true, username: 'gw', password: 'x', url: 'amqps://10.0.0.1' })).toBe(0)
  })
})
