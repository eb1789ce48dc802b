// A reload ends no problem whose cause holds: only where the mapping of a source changed, it is judged again.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { configText } from '../support/config-text.ts'
import { createFastClock } from '../support/fast-clock.ts'
import { startPipeline, topicOf } from '../support/pipeline-world.ts'

const found = ['MODEL_UNKNOWN', 'POSITIONS_SWAPPED', 'VALUES_WITHHELD']

const configOf = (more: string, speed: string) =>
  configText({
    sources: `
  - name: trucks
    topic: telemetry/v1/{device}
    families: { truck: ['FMC6*'] }
    warn_without_model: odometer
    map:
      time: { path: ts, format: ms }
      latitude: { path: lat }
      longitude: { path: lon }
      speed: { path: ${speed}, unit: km/h }
      signals: [{ type: OBD_LIFETIME_ODOMETER, path: km, unit: km, families: [truck] }]
${more}`,
  })

const trailers =
  '  - { name: trailers, topic: "trailers/{device}", map: { latitude: { path: a }, longitude: { path: b } } }'

test('a reload ends none of the findings about devices of a source that did not change', async () => {
  const clock = createFastClock(300)
  const pipeline = await startPipeline({ clock, config: configOf('', 'v') })
  const devices = await Promise.all(
    ['a', 'b', 'c', 'd', 'e', 'swapped', 'wild'].map((name) => pipeline.device(name)),
  )
  let sent = 0
  const send = async () => {
    sent += 1
    for (const device of devices) {
      const place = device.clientId === 'swapped' ? { lat: 13, lon: 52 } : { lat: 52, lon: 13 }
      const v = device.clientId === 'wild' ? 999_999 : 50
      const payload = JSON.stringify({ ts: clock.now(), ...place, v })
      device.publish({ topic: topicOf(device.clientId), payload, messageId: sent })
    }
    await Promise.all(devices.map((device) => device.acked(sent)))
  }
  const foundNow = () =>
    pipeline
      .codes()
      .filter((code) => found.includes(code))
      .toSorted()
  while (foundNow().length < found.length) await send()
  const sinceOf = () => Object.fromEntries(found.map((code) => [code, pipeline.condition(code)?.since]))
  const before = sinceOf()
  const reload = async (more: string, speed: string) => {
    await writeFile(join(pipeline.folder, 'gateway.yaml'), configOf(more, speed)(pipeline.baseUrl))
    expect(await pipeline.gateway.reload('test')).toMatchObject({ kind: 'reloaded' })
    const at = clock.now()
    return async () => {
      while (clock.now() - at < 30_000) await send()
    }
  }

  await (
    await reload(trailers, 'v')
  )()
  expect(foundNow()).toEqual(found)
  expect(sinceOf()).toEqual(before)
  expect(pipeline.condition('MODEL_UNKNOWN')?.what).toContain('7 devices')

  // What was withheld may be right by the changed mapping.
  await reload(trailers, 'speed')
  expect(foundNow()).toEqual([])
}, 60_000)
