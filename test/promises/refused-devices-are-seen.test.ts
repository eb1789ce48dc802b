// A device of which the service refuses each payload is not shown as one that sends, though its payloads are retried.

import { expect, test } from 'vitest'
import { runCli } from '../support/cli-world.ts'
import { messageOf, startPipeline, topicOf } from '../support/pipeline-world.ts'

test('a device is not accepted from its third refused payload on, and not by its first one', async () => {
  const pipeline = await startPipeline({
    sandbox: { faults: { fail: [{ device: 'truck-2' }] } },
    sections: { delivery: 'batch: { max_payloads: 2, linger: 1s }' },
  })
  const devices = [await pipeline.device('truck-1'), await pipeline.device('truck-2')]
  const shown = async () =>
    (await runCli(['devices', '--state', 'not_accepted', '--url', pipeline.gateway.addresses.ops, '--json']))
      .stdout
  for (let n = 1; n <= 3; n += 1) {
    expect(await shown()).not.toContain('truck')
    for (const [index, device] of devices.entries())
      device.publish({ topic: topicOf(`truck-${index + 1}`), payload: messageOf(n), messageId: n })
    // In batches of both: those of the second device alone would be an outage.
    await pipeline.until(() => {
      const { delivered, retried } = pipeline.status().totals
      return delivered === n && retried === n
    })
  }
  const { devices: list } = JSON.parse(await shown()) as {
    devices: { device: string; lastRefused: { outcome: string; times: number } }[]
  }
  expect(list.map(({ device, lastRefused: { outcome, times } }) => [device, outcome, times])).toEqual([
    ['truck-2', 'retried', 3],
  ])
})
