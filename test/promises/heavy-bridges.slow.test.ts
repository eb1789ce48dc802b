// A bridge pays for the time of its messages as a client of the embedded broker does: what it brings does not delay
// others, it is read slower, nothing is lost, and the report names it.

import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { gzipSync } from 'node:zlib'
import { onTestFinished, expect, test } from 'vitest'
import { configText } from '../support/config-text.ts'
import { startPipeline } from '../support/pipeline-world.ts'

/** Some hundred bytes that unpack to 256 KiB of fields that nobody knows. */
const bomb = gzipSync(Buffer.alloc(256 * 1024 - 200, Buffer.from([0x30, 1])))
const keys = Buffer.from(`{${Array.from({ length: 10_000 }, (_, n) => `"k${n}":1`).join(',')}}`)
/** Of the messages of the bridge, while one of the client waits for its fsync: without turns it is all of them. */
const takenAtOnceMax = 0.5
const rounds = 8

/** A broker and a publisher in a thread of their own, as those of a site are on another machine. */
async function startSite(): Promise<{
  port: number
  publish(message: { topic: string; payload: Buffer; count: number }): void
}> {
  const worker = new Worker(new URL('../support/site-broker.ts', import.meta.url))
  onTestFinished(async () => void (await worker.terminate()))
  const [port] = (await once(worker, 'message')) as [number]
  return { port, publish: (message) => worker.postMessage(message, []) }
}

test.each([
  ['256 KiB in some hundred bytes', { topic: 'kura/truck-7', payload: bomb, count: 1000 }],
  ['10,000 keys', { topic: 'wide/truck-7', payload: keys, count: 250 }],
])(
  'messages of %s behind a bridge come between those of a client, a few at a time',
  async (_, heavy) => {
    const site = await startSite()
    const pipeline = await startPipeline({
      config: configText({
        ingest: `
  broker: { listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true } }
  bridges: [{ name: site, url: "mqtt://127.0.0.1:${site.port}", topics: ["#"], client_id: gw, protocol: "3.1.1" }]`,
        sources: `
  - { name: packed, topic: "kura/{device}", encoding: kura, map: { time: { path: timestamp, format: ms }, latitude: { path: position.latitude }, longitude: { path: position.longitude } } }
  - { name: wide, topic: "wide/{device}", map: { time: { path: ts, format: ms }, latitude: { path: lat }, longitude: { path: lon } } }
  - { name: trucks, topic: "telemetry/v1/{device}", map: { time: { path: ts, format: ms }, latitude: { path: lat }, longitude: { path: lon } } }`,
      }),
    })
    await pipeline.until(() => pipeline.status().messageSources[1]?.connectedAt !== null)
    const device = await pipeline.device('truck-1')
    const taken = () => pipeline.status().messageSources[1]?.messages ?? 0
    const isReported = () => pipeline.events.some(({ kind }) => kind === 'client_paused')
    let published = 0
    let sent = 0
    let takenAtOnce = 0
    // On a fast machine the bridge waits for less.
    while (taken() < published || (!isReported() && published < rounds * heavy.count)) {
      if (taken() === published) {
        site.publish(heavy)
        published += heavy.count
      }
      const before = taken()
      const text = JSON.stringify({ ts: Date.now(), lat: 52.5, lon: 13.4 })
      device.publish({ topic: 'telemetry/v1/truck-1', payload: text, messageId: (sent += 1) })
      await device.acked(sent)
      takenAtOnce = Math.max(takenAtOnce, taken() - before)
    }
    expect(takenAtOnce).toBeLessThan(takenAtOnceMax * heavy.count)
    await pipeline.until(() => pipeline.status().messageSources[1]?.acked === published)
    expect(pipeline.status().spool.deadLetters).toBe(published)
    expect(pipeline.events).toContainEqual(
      expect.objectContaining({
        kind: 'client_paused',
        reason: 'mapping_time',
        top: [expect.stringMatching(/^site\/gw /)],
      }),
    )
  },
  60_000,
)
