// A device that sends on without a position that can be used is not shown as one that is well, unless that is usual
// for it.

import { setTimeout as wait } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { runCli } from '../support/cli-world.ts'
import { configText } from '../support/config-text.ts'
import { createFastClock } from '../support/fast-clock.ts'
import { startPipeline, topicOf } from '../support/pipeline-world.ts'

/** A quarter of an hour of the gateway passes in three seconds. */
const factor = 300
const quarterMs = 900_000

test('a device that sends 0, 0 or no position for a quarter of an hour is seen, and one in a tunnel is not', async () => {
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
    parked: { speed: 0 },
    newcomer: { lat: 0, lon: 0 },
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
  await beat((name) => (name === 'newcomer' ? fleet[name] : fix))
  const startedMs = clock.monotonic()
  const passedMs = () => clock.monotonic() - startedMs
  const seen = async () =>
    (await runCli(['devices', '--state', 'no_position', '--url', pipeline.gateway.addresses.control])).stdout
  while (passedMs() < quarterMs / 2) await beat((name) => fleet[name])
  expect(await seen()).not.toContain('no position ')
  await beat((name) => (name === 'tunnel' ? fix : fleet[name]))
  while (pipeline.status().devices.noPosition < 4) {
    expect(passedMs()).toBeLessThan(2 * quarterMs)
    await beat((name) => (name === 'tunnel' && passedMs() > 1.3 * quarterMs ? fix : fleet[name]))
  }
  const text = await seen()
  const shown = text.match(/^[a-z]+(?= .*no position)/gm)?.sort()
  expect(shown).toEqual(['missing', 'newcomer', 'parked', 'zero'])
  expect(text).toContain('sends no position that can be used any more')
  expect(text).toContain('has sent no position that can be used')
  expect(pipeline.status().devices).toMatchObject({ noPosition: 4, sending: 1 })

  // One that has a position every 20 minutes, and other values in between, is well.
  await beat(() => fix)
  expect(pipeline.status().devices).toMatchObject({ noPosition: 0, sending: 5 })
  const againMs = passedMs()
  while (passedMs() < againMs + 1.2 * quarterMs) await beat((name) => (name === 'tunnel' ? fix : fleet[name]))
  expect(await seen()).not.toContain('no position ')
})
