import { describe, expect, test } from 'vitest'
import { ingestOptions, ingestSchema } from '../../../../src/ingest/config.ts'
import { compileRules, patternProblem } from '../../../../src/ingest/broker/publish-rules/allowed-topics.ts'
import { rowsBeside } from '../../../support/case-rows.ts'
import { openIngest, type IngestWorld, accessFor } from '../../../support/ingest-world.ts'
import { openMapperOf, truckSource } from '../../../support/mapping-world.ts'
import { auto } from '../../../support/memory-intake-spool.ts'
import type { Device } from '../../../support/mqtt-device.ts'

const rows = rowsBeside(import.meta.filename) as {
  patterns: [pattern: string, topic: string, isAllowed: boolean][]
  checked: [pattern: string, problem: string | null][]
}

const { access } = accessFor(['truck-7', 'truck-8', 'depot'], true)

/** The options of a section `ingest.broker.rules`. */
function rulesOf(rules: unknown) {
  const broker = { access: { anonymous: true }, rules }
  return { access, rules: ingestOptions(ingestSchema.parse({ broker })).rules }
}

async function connected(world: IngestWorld, name: string, clientId = name): Promise<Device> {
  const device = await world.connection(clientId)
  await device.connect({ username: name, password: Buffer.from(name) })
  return device
}

const reading = (km: number) => JSON.stringify({ ts: 1_760_000_000_000 + km, lat: 52, lon: 13 })

describe('the patterns of a rule', () => {
  const sender = { clientId: 'c7', userName: 'depot', certificateName: 'cn.depot', identity: 'id7' }
  const isAllowed = (pattern: string, topic: string, more: Partial<typeof sender> = {}) =>
    compileRules([{ identities: null, topics: [pattern] }])({ ...sender, ...more })(topic)

  test.each(rows.patterns)('%s for %s: %s', (pattern, topic, expected) => {
    expect(isAllowed(pattern, topic)).toBe(expected)
  })

  test.each(['#', '+', 'a/b', '', 'x#'])('a client id %j widens no right', (clientId) => {
    for (const topic of ['telemetry/a/b', 'telemetry/x', `telemetry/${clientId}`, 'telemetry'])
      expect(isAllowed('telemetry/{client}', topic, { clientId })).toBe(false)
  })

  test('a pattern with a name that the client does not have allows nothing', () => {
    const compile = compileRules([{ identities: null, topics: ['{cn}/#', '{identity}', 'x{user}'] }])
    const match = compile({ clientId: 'c', userName: null, certificateName: null, identity: null })
    for (const topic of ['null', '/a', '', 'x', 'undefined']) expect(match(topic)).toBe(false)
  })

  test('a rule with identities is for those only, whatever user name a client claims', () => {
    const compile = compileRules([{ identities: ['depot'], topics: ['depot/#'] }])
    expect(compile({ ...sender, identity: 'depot' })('depot/x')).toBe(true)
    expect(compile({ ...sender, userName: 'depot', identity: null })('depot/x')).toBe(false)
  })

  test.each(rows.checked)('%j is checked', (pattern, problem) => {
    expect(patternProblem(pattern)).toBe(problem)
  })
})

describe('a source that names the identity', () => {
  const source = truckSource({}, { identity: 'device' })

  test('takes messages of a client under its own name only', async () => {
    const spool = auto()
    await using world = await openIngest(spool, { access, mapper: openMapperOf([source]) })
    const device = await connected(world, 'truck-7')
    const anonymous = await world.device('truck-8')
    for (const [index, one] of ['truck-7', 'truck-8', 'truck-7'].entries())
      device.publish({ topic: `telemetry/v1/${one}`, payload: reading(index), messageId: index + 1 })
    await device.acked(3)
    // Its client id is what it claims.
    anonymous.publish({ topic: 'telemetry/v1/truck-8', payload: reading(5) })
    await anonymous.acked(1)
    expect(spool.payloads.map(({ device }) => device)).toEqual(['truck-7', 'truck-7'])
    expect(world.ingest.counters()).toMatchObject({
      mapped: 2,
      ignored: 2,
      refusedByIdentity: [
        { source: 'truck-7', reason: 'not_own_name', count: 1 },
        { source: null, reason: 'not_own_name', count: 1 },
      ],
    })
  })

  test('applies to open connections from the reload on that brings it, and no longer than it', async () => {
    const spool = auto()
    await using world = await openIngest(spool, { access, mapper: openMapperOf([truckSource()]) })
    const device = await connected(world, 'truck-7')
    const publish = async (id: number) => {
      device.publish({ topic: 'telemetry/v1/truck-8', payload: reading(id), messageId: id })
      await device.acked(id)
    }
    await publish(1)
    await world.ingest.swap(openMapperOf([source]))
    await publish(2)
    await world.ingest.swap(openMapperOf([truckSource()]))
    await publish(3)
    expect(spool.payloads).toHaveLength(2)
    expect(world.ingest.counters()).toMatchObject({ mapped: 2, ignored: 1 })
    // From one mapping with the option to another one that restricts other topics only.
    await world.ingest.swap(openMapperOf([source]))
    await publish(4)
    const elsewhere = { ...source, name: 'elsewhere', topic: 'elsewhere/{device}' }
    await world.ingest.swap(openMapperOf([truckSource(), elsewhere]))
    await publish(5)
    expect(world.ingest.counters()).toMatchObject({ mapped: 3, ignored: 2 })
  })

  test.each(['close', 'drop'])(
    'leaves a message of QoS 2 alone that was taken before the rule came and comes again (on_violation: %s)',
    async (on_violation) => {
      const spool = auto()
      const { rules } = rulesOf({ on_violation })
      await using world = await openIngest(spool, { access, rules, mapper: openMapperOf([truckSource()]) })
      const resumed = async () => {
        const device = await world.connection('truck-7', { releases: false })
        await device.connect({ username: 'truck-7', password: Buffer.from('truck-7'), clean: false })
        return device
      }
      const taken = { topic: 'telemetry/v1/truck-8', payload: reading(1), qos: 2, messageId: 5 } as const
      const first = await resumed()
      first.publish(taken)
      await first.acked(1)
      first.destroy()
      await world.ingest.swap(openMapperOf([source]))
      const second = await resumed()
      second.publish({ ...taken, dup: true })
      second.send({ cmd: 'pubrel', messageId: 5 })
      expect(await second.acked(2)).toEqual([
        { cmd: 'pubrec', messageId: 5 },
        { cmd: 'pubcomp', messageId: 5 },
      ])
      expect(spool.payloads).toHaveLength(1)
      expect(world.ingest.counters().refusedMessages).toEqual(new Map())
      // Released, so the same bytes are a message that the rule refuses.
      second.publish({ ...taken, dup: true })
      await (on_violation === 'close' ? second.gone() : second.acked(3))
      expect(world.ingest.counters().refusedMessages).toEqual(new Map([['not_own_name', 1]]))
      expect(spool.payloads).toHaveLength(1)
    },
  )

  test('must have the capture in each of its topics', () => {
    const topic = ['telemetry/v1/{device}', 'telemetry/{fleet}/x']
    expect(() => openMapperOf([truckSource({}, { topic, device: 'x', identity: 'device' })])).toThrow(
      /must be a capture of each topic/,
    )
  })
})
