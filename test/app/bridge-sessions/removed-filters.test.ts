// A topic that is removed from the config of a bridge: Mosquitto keeps it in the session, and the gateway unsubscribes it.

import { connectAsync } from 'mqtt'
import { expect, test } from 'vitest'
import { configText, positionMap } from '../../support/config-text.ts'
import { newFolder } from '../../support/folders.ts'
import { hasMosquitto, publishAll, startMosquitto } from '../../support/mosquitto.ts'
import { startPipeline, type Pipeline } from '../../support/pipeline-world.ts'

const depotOf = ({ gateway }: Pipeline) => gateway.status().messageSources[0]!

test.skipIf(!hasMosquitto)(
  'is unsubscribed at the next start, and so is a filter without the share group',
  async () => {
    const { port } = await startMosquitto()
    const url = `mqtt://127.0.0.1:${port}`
    const folder = await newFolder()
    const config = (bridge: string) =>
      configText({
        ingest: `{ broker: { listeners: [] }, bridges: [{ name: depot, url: "${url}", client_id: gw, ${bridge} }] }`,
        sources: `[{ name: trucks, topic: 'u/{device}', map: ${positionMap} }]`,
        delivery: 'batch: { linger: 5ms }',
      })
    let sent = 0
    const message = (topic: string) => {
      sent += 1
      return { topic, payload: JSON.stringify({ ts: Date.now() + sent, lat: 51.3, lon: 9.4 }) }
    }
    const start = async (bridge: string) => {
      const pipeline = await startPipeline({ folder, config: config(bridge) })
      await pipeline.until(() => depotOf(pipeline).connectedAt !== null)
      const removed = pipeline.events.flatMap((event) =>
        event.kind === 'message_source_connected' ? [event.removedFilters] : [],
      )
      return { pipeline, removed }
    }

    const first = await start('topics: ["t/+", "u/+"]')
    expect(first.removed).toEqual([[]])
    await first.pipeline.gateway.stop('test')

    const second = await start('topics: ["u/+"]')
    expect(second.removed).toEqual([['t/+']])
    await publishAll(url, [message('t/1'), message('u/1')])
    await second.pipeline.until(() => second.pipeline.sandbox.stats().payloadsAccepted === 1)
    expect(depotOf(second.pipeline).messages).toBe(1)
    await second.pipeline.gateway.stop('test')

    // With the plain filter it would get all messages, and not only its share.
    const other = await connectAsync(url, { clientId: 'other' })
    let taken = 0
    other.on('message', () => (taken += 1))
    await other.subscribeAsync('$share/g/u/+', { qos: 1 })
    const third = await start('topics: ["u/+"], share_group: g')
    expect(third.removed).toEqual([['u/+']])
    await publishAll(
      url,
      Array.from({ length: 40 }, () => message('u/1')),
    )
    await third.pipeline.until(() => taken + depotOf(third.pipeline).messages === 40)
    expect(taken).toBe(20)
    await other.endAsync()
  },
)
