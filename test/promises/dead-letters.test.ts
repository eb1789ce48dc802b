import { describe, expect, test } from 'vitest'
import { openSpoolWorld } from '../support/open-spool.ts'
import { messageOf, startPipeline, topicOf } from '../support/pipeline-world.ts'
import { join } from 'node:path'
import { openLevelStore, type StoreEntry } from '../../src/storage/storage.ts'

const hostile: [what: string, payload: string | Buffer, reason: string][] = [
  ['not JSON', 'lat=52;lon=13', 'NOT_JSON'],
  ['ten thousand levels deep', '['.repeat(10_000) + ']'.repeat(10_000), 'TOO_DEEP'],
  ['a latitude beyond the pole', messageOf(1, { lat: 91, odometer: undefined }), 'OUT_OF_RANGE'],
  [
    'a latitude of 1e400',
    messageOf(2, { odometer: undefined }).replace(/"lat":[^,]+/, '"lat":1e400'),
    'BAD_VALUE',
  ],
  ['a list', '[1,2,3]', 'NOT_AN_OBJECT'],
  ['a message without its time', JSON.stringify({ lat: 1, lon: 2 }), 'NO_TIME'],
]

describe('a dead letter is always reported', () => {
  test('a message that cannot be mapped is kept whole with its reason, acknowledged, logged, counted and shown', async () => {
    const pipeline = await startPipeline()
    const device = await pipeline.device('truck-1')
    hostile.forEach(([, payload], index) =>
      device.publish({ topic: topicOf('truck-1'), payload, messageId: index + 1 }),
    )
    device.publish({ topic: 'some/other/topic', payload: '{}', messageId: 90 })
    await device.acked(hostile.length + 1)
    const { totals, conditions } = pipeline.status()
    expect(totals.unmappable).toBe(hostile.length + 1)
    expect(totals.dead).toBe(0)
    expect(conditions.map(({ code }) => code)).toContain('DEAD_LETTERS')
    const lines = pipeline
      .log()
      .split('\n')
      .filter((line) => line.includes('"message_unmappable"'))
    expect(lines.length).toBeGreaterThan(0)
    for (const line of lines)
      expect(JSON.parse(line)).toMatchObject({ level: 'warn', reason: expect.any(String) })
    const metrics = await (await fetch(`${pipeline.gateway.addresses.ops}/metrics`)).text()
    expect(metrics).toMatch(new RegExp(`^gateway_dead_letters\\S* ${hostile.length + 1}$`, 'm'))

    await pipeline.gateway.stop('to look at the letters')
    const { spool } = await openSpoolWorld({ path: join(pipeline.folder, 'spool') })
    const letters = []
    for await (const { deadLetter: letter } of spool.deadLetters({ limit: 100 })) letters.push(letter)
    expect(letters.map(({ reason }) => reason)).toEqual([
      ...hostile.map(([, , reason]) => reason),
      'NO_SOURCE',
    ])
    letters.slice(0, -1).forEach(({ envelope, detail }, index) => {
      const [, payload = ''] = hostile[index] ?? []
      expect(Buffer.from(envelope?.bytes ?? '', 'base64').equals(Buffer.from(payload))).toBe(true)
      expect(envelope).toMatchObject({ topic: topicOf('truck-1'), clientId: 'truck-1', qos: 1 })
      expect(detail.length).toBeGreaterThan(10)
    })
  })

  test('sending it again with DUP makes no second dead letter', async () => {
    const pipeline = await startPipeline()
    const device = await pipeline.device('truck-1')
    device.publish({ topic: topicOf('truck-1'), payload: 'no json', messageId: 1 })
    device.publish({ topic: topicOf('truck-1'), payload: 'no json', messageId: 1, dup: true })
    await device.acked(2)
    expect(pipeline.status().totals).toMatchObject({ unmappable: 1, resent: 1 })
  })

  test('a payload that the service refuses for good is kept with the message of the service', async () => {
    const pipeline = await startPipeline({
      sandbox: { faults: { fail: [{ error_type: 'Validation', message: 'no such truck' }] } },
      sections: { delivery: 'batch: { linger: 10ms }, errors: { Validation: [] }' },
    })
    const device = await pipeline.device('truck-1')
    device.publish({ topic: topicOf('truck-1'), payload: messageOf(1), messageId: 1 })
    await device.acked(1)
    await pipeline.until(() => pipeline.status().totals.dead === 1)
    await pipeline.gateway.stop('to look at the letter')
    const { spool } = await openSpoolWorld({ path: join(pipeline.folder, 'spool') })
    for await (const { deadLetter: letter } of spool.deadLetters({ limit: 1 })) {
      expect(letter).toMatchObject({
        stage: 'delivery',
        reason: 'Validation',
        device: 'truck-1',
        requestId: expect.any(String),
        failure: { errorMessage: 'no such truck' },
        payload: { deviceIdentifier: { id: 'truck-1' } },
      })
    }
  })

  test('one of which a bit has flipped on the disk is set aside and reported, and counts no more', async () => {
    const first = await startPipeline()
    await first.publish('truck-1', 'no json', 'no json either')
    await first.gateway.stop('the disk ages')
    const store = await openLevelStore(join(first.folder, 'spool/store'))
    const range = { gte: Buffer.from([0x20]), lt: Buffer.from([0x21]) }
    const letters: StoreEntry[] = []
    for await (const page of store.pages(range)) letters.push(...page)
    const [key, value] = letters[0]!
    value[40]! ^= 4
    await store.write([{ type: 'put', key, value }], { sync: true })
    await store.close()

    const { gateway, status, condition } = await startPipeline({ folder: first.folder })
    const listed = await fetch(`${gateway.addresses.ops}/dead-letters`)
    expect(await listed.json()).toMatchObject({ deadLetters: [{ reason: 'NOT_JSON' }] })
    expect(status().spool.deadLetters).toBe(1)
    expect(condition('RECORD_DAMAGED')?.why).toMatch(/checksum of a dead letter/)
    await gateway.stop('to look at what was set aside')
    const after = await openLevelStore(join(first.folder, 'spool/store'))
    expect(await after.get(Buffer.concat([Buffer.from([0x23]), key]))).toEqual(value)
    await after.close()
  })
})
