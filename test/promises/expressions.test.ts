// Expressions of a source (docs/mapping.md#expressions), at the whole gateway.

import { describe, expect, test } from 'vitest'
import { configText } from '../support/config-text.ts'
import { newFolder } from '../support/folders.ts'
import { startPipeline } from '../support/pipeline-world.ts'

const start = Date.now() - 60_000

const config = configText({
  sources: `
  - name: trucks
    topic: trucks/{device}
    when: topic.device != "test" && has(message.p)
    each: { expr: "p.filter(x, has(x.lat))" }
    map:
      time: { path: ts, format: ms }
      latitude: { path: lat }
      longitude: { path: lon }
      signals:
        - { type: OBD_LIFETIME_ODOMETER, expr: lo + hi * 65536, unit: m }
      fields: { card: { expr: card, type: text } }`,
  more: 'clocks: { trust_local: true }',
})

const record = (n: number, more: Record<string, unknown> = {}) => ({
  ts: start + n * 1000,
  lat: 52.5,
  lon: 13.4,
  lo: 7.3,
  hi: 3,
  ...more,
})

describe('a source with expressions', () => {
  test('delivers what they give, with all digits of what they select', async () => {
    const pipeline = await startPipeline({ folder: await newFolder(), config })
    const device = await pipeline.device('gw')
    const text = JSON.stringify({ p: [record(1, { card: 'CARD' }), { ts: 1 }] })
    const payload = text.replace('"CARD"', '1234567890123456789')
    device.publish({ topic: 'trucks/t-1', payload, messageId: 1 })
    await device.acked(1)
    await pipeline.until(() => pipeline.sandbox.received({ limit: 10 }).length === 1)
    const [sent] = pipeline.sandbox.received({ limit: 10 })
    expect(sent?.payload).toMatchObject({
      card: '1234567890123456789',
      signals: [{ type: 'OBD_LIFETIME_ODOMETER', value: '196.6153', valueUnit: 'KILOMETERS' }],
    })
  })

  test('says in a sentence which value of a dead letter has no result', async () => {
    const broken = (baseUrl: string) =>
      config(baseUrl)
        .replace('{ path: lat }', '{ expr: lat / zero }')
        .replace('{ path: ts, format: ms }', '{ expr: ts / one, format: ms }')
    const pipeline = await startPipeline({ folder: await newFolder(), config: broken })
    const device = await pipeline.device('gw')
    const numbers = [
      { zero: 0, one: 1, lo: null },
      { zero: 1, one: 0 },
    ]
    for (const [index, more] of numbers.entries())
      device.publish({
        topic: 'trucks/t-1',
        payload: JSON.stringify({ p: [record(index, more)] }),
        messageId: index + 1,
      })
    await device.acked(numbers.length)
    const details = pipeline.events.flatMap((event) =>
      event.kind === 'message_unmappable' ? [event.detail] : [],
    )
    expect(details).toEqual([
      'Record 1 of the message: The latitude has no value: the result is no finite number.',
      'Record 1 of the message: The time has no value: the result is no finite number.',
    ])
  })

  test('makes a dead letter of a message that needs too many steps, and of no other', async () => {
    const pipeline = await startPipeline({ folder: await newFolder(), config })
    const device = await pipeline.device('gw')
    const long = JSON.stringify({ p: Array.from({ length: 20_000 }, () => 1) })
    device.publish({ topic: 'trucks/t-1', payload: long, messageId: 1 })
    device.publish({ topic: 'trucks/t-1', payload: JSON.stringify({ p: [record(2)] }), messageId: 2 })
    await device.acked(2)
    await pipeline.until(() => pipeline.sandbox.received({ limit: 10 }).length === 1)
    expect(pipeline.status().spool.deadLetters).toBe(1)
    expect(pipeline.events.find(({ kind }) => kind === 'message_unmappable')).toMatchObject({
      reason: 'EXPRESSION_LIMIT',
    })
  })
})
