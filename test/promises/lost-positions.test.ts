// A truck that had positions and drives on without one is seen within the hour; a vehicle in a hall, where no receiver
// has a fix, is not.

import { setTimeout as wait } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { runCli } from '../support/cli-world.ts'
import { configText } from '../support/config-text.ts'
import { createFastClock } from '../support/fast-clock.ts'
import { startPipeline, topicOf } from '../support/pipeline-world.ts'

/** An hour of the gateway passes in twelve seconds. */
const factor = 300
const hourMs = 3_600_000

test('a truck that drives and sends 0, 0 or no position is seen within the hour, and one in a hall is not', async () => {
  const clock = createFastClock(factor)
  const pipeline = await startPipeline({
    clock,
    config: configText({
      sources: `[{ name: trucks, topic: "telemetry/v1/{device}", map: { latitude: { path: lat }, longitude: { path: lon },
        speed: { path: speed }, signals: [{ type: OBD_LIFETIME_ODOMETER, path: odometer, unit: km }] } }]`,
    }),
  })
  const fleet = {
    zero: { lat: 0, lon: 0, speed: 62 },
    missing: { speed: 62 },
    tunnel: { lat: 0, lon: 0, speed: 62 },
    hall: { lat: 0, lon: 0, speed: 6 },
    parked: { speed: 0 },
  }
  const names = Object.keys(fleet) as (keyof typeof fleet)[]
  const trucks = await Promise.all(names.map(async (name) => ({ name, device: await pipeline.device(name) })))
  let sent = 0
  async function beat(valuesOf: (name: keyof typeof fleet) => object): Promise<void> {
    sent += 1
    for (const { name, device } of trucks)
      device.publish({
        topic: topicOf(name),
        payload: JSON.stringify({ odometer: 1000 + sent, ...valuesOf(name) }),
        messageId: sent,
      })
    await Promise.all(trucks.map(({ device }) => device.acked(sent)))
    await wait(50)
  }
  const fix = { lat: 48.1, lon: 11.6, speed: 62 }
  await beat(() => fix)
  const startedMs = clock.monotonic()
  const passedMs = () => clock.monotonic() - startedMs
  const seen = async () =>
    (await runCli(['devices', '--state', 'no_position', '--url', pipeline.gateway.addresses.control])).stdout
  while (passedMs() < hourMs / 3) await beat((name) => fleet[name])
  expect(await seen()).not.toContain('no position ')
  // Out of the tunnel, and into the next one.
  await beat((name) => (name === 'tunnel' ? fix : fleet[name]))
  while (pipeline.status().devices.noPosition < 2) {
    expect(passedMs()).toBeLessThan(hourMs)
    await beat((name) => (name === 'tunnel' && passedMs() > 0.95 * hourMs ? fix : fleet[name]))
  }
  const text = await seen()
  expect(text.match(/^[a-z]+(?= .*no position)/gm)?.sort()).toEqual(['missing', 'zero'])
  expect(text).toMatch(/no position any more\. It drove without one for \d+ min/)
  expect(pipeline.status().devices).toMatchObject({ noPosition: 2, sending: 3 })
})
