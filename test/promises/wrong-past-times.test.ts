// Device times that are far in the past are judged like those of the future: kept, with the cause where it is known,
// and sent once a person or a setting has decided.

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { configText } from '../support/config-text.ts'
import { send } from '../support/ops-world.ts'
import { startPipeline, type Pipeline } from '../support/pipeline-world.ts'

const dayMs = 86_400_000
const secondMs = 1000

const config = (baseUrl: string, clocks = '') =>
  configText({
    sources: `
  - name: trucks
    topic: telemetry/v1/{device}
    map: { time: { path: ts, format: [ms, iso] }, latitude: { path: lat }, longitude: { path: lon } }`,
    more: `clocks: { trust_local: true ${clocks} }`,
  })(baseUrl)
const place = { lat: 52.5, lon: 13.4 }

async function publish(pipeline: Pipeline, messages: readonly object[]): Promise<void> {
  const device = await pipeline.device('truck-7')
  messages.forEach((message, index) =>
    device.publish({
      topic: 'telemetry/v1/truck-7',
      payload: JSON.stringify({ ...place, ...message }),
      messageId: index + 1,
    }),
  )
  await device.acked(messages.length)
}

const detailsIn = ({ events }: Pipeline) =>
  events.flatMap((event) =>
    event.kind === 'message_quarantined' ? [`${event.reason}: ${event.detail}`] : [],
  )

const since = (year: number, month = 0, day = 1) => Date.UTC(year, month, day)

describe('a device time that is too old', () => {
  test.each<[what: string, message: (now: number) => object, detail: RegExp]>([
    ['1024 weeks', (now) => ({ ts: now - 7168 * dayMs }), /1024 weeks behind: .*GPS\. `shift: 619315200s`/],
    ['2048 weeks', (now) => ({ ts: now - 14_336 * dayMs }), /2048 weeks behind/],
    [
      'seconds since 2001',
      (now) => ({ ts: now - since(2001) }),
      /counted from 2001-01-01.* `shift: 978307200s`/,
    ],
    ['seconds since 2000', (now) => ({ ts: now - since(2000) }), /counted from 2000-01-01/],
    ['seconds of GPS', (now) => ({ ts: now - since(1980, 0, 6) }), /counted from the epoch of GPS/],
    ['a clock of 2010', () => ({ ts: since(2010) + dayMs }), /never set begin at 2010-01-01/],
    ['a clock of 2004', () => ({ ts: since(2004) + dayMs }), /never set begin at 2004-01-01/],
    [
      'a second time',
      (now) => ({ ts: now - 400 * dayMs, meta: { created_at: new Date(now).toISOString() } }),
      /"meta\.created_at" of the message has the time of its arrival/,
    ],
    [
      'a stored message with a second time',
      (now) => ({ ts: now - 7168 * dayMs - 3 * dayMs, serverTime: now - 3 * dayMs }),
      /By "serverTime" of the message it is 1024 weeks behind/,
    ],
    ['nothing known', (now) => ({ ts: now - 100 * dayMs }), /older than clocks\.past_max\.$/],
  ])('by %s is kept, and its cause named', async (_what, message, detail) => {
    const pipeline = await startPipeline({ config })
    await publish(pipeline, [message(Date.now()), { ts: Date.now() }])
    await pipeline.until(() => pipeline.status().totals.delivered === 1)
    expect(detailsIn(pipeline)).toEqual([expect.stringMatching(detail)])
    expect(pipeline.status().spool.quarantined).toBe(1)
  })

  test('is sent with `past_max` for devices that send what they stored for years', async () => {
    const pipeline = await startPipeline({ config: (baseUrl) => config(baseUrl, ', past_max: 3650d') })
    await publish(pipeline, [{ ts: Date.now() - 400 * dayMs }])
    await pipeline.until(() => pipeline.status().totals.delivered === 1)
    expect(detailsIn(pipeline)).toEqual([])
  })

  test('is sent as it is by a release', async () => {
    const pipeline = await startPipeline({ config })
    const old = Date.now() - 400 * dayMs
    await publish(pipeline, [{ ts: old }, { ts: old + secondMs }])
    const { control } = pipeline.gateway.addresses
    const release = async (query: string) =>
      (await send(control, `/control/quarantine/release?${query}`, { method: 'POST' })).json()
    expect(await release('all=1')).toMatchObject({ released: 2, payloads: 2 })
    await pipeline.until(() => pipeline.status().totals.delivered === 2)
    expect(pipeline.sandbox.received({ limit: 9 }).map(({ payload }) => payload['signalTimestamp'])).toEqual(
      expect.arrayContaining([old]),
    )
  })

  test('is corrected by `shift`, with a payloadId of the right time', async () => {
    const pipeline = await startPipeline({ config })
    const now = Date.now()
    const path = join(pipeline.folder, 'gateway.yaml')
    await writeFile(path, (await readFile(path, 'utf8')).replace('path: ts,', 'path: ts, shift: 7168d,'))
    expect(await pipeline.gateway.reload('test')).toMatchObject({ kind: 'reloaded' })
    await publish(pipeline, [{ ts: now - 7168 * dayMs }])
    await pipeline.until(() => pipeline.status().totals.delivered === 1)
    expect(pipeline.sandbox.received({ limit: 1 })[0]?.payload['signalTimestamp']).toBe(now)
  })
})

describe('a clock that is off by whole hours', () => {
  const conditionOf = (pipeline: Pipeline) =>
    pipeline.status().conditions.find(({ code }) => code === 'DEVICES_HOURS_OFF')

  test('is a condition that names the hours, and ends with them', async () => {
    const pipeline = await startPipeline({ config })
    const now = Date.now()
    const behind = (n: number) => ({ ts: now - 5 * 3600 * secondMs - n })
    await publish(
      pipeline,
      Array.from({ length: 20 }, (_, n) => behind(n)),
    )
    await pipeline.until(() => conditionOf(pipeline) !== undefined)
    expect(conditionOf(pipeline)).toMatchObject({
      severity: 'warning',
      what: 'The clock of truck-7 is 5 h behind.',
    })
    await publish(
      pipeline,
      Array.from({ length: 20 }, (_, n) => ({ ts: now - n })),
    )
    await pipeline.until(() => conditionOf(pipeline) === undefined)
  }, 60_000)
})
