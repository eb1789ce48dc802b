import { expect, test } from 'vitest'
import { configText } from '../support/config-text.ts'
import { runCli } from '../support/cli-world.ts'
import { get } from '../support/ops-world.ts'
import { startPipeline } from '../support/pipeline-world.ts'

const config = configText({
  sources: `
  - name: trucks
    topic: telemetry/v1/{device}
    map:
      time: { path: ts, format: ms }
      latitude: { path: lat }
      longitude: { path: lon }
      speed: { path: v }
      signals:
        - { type: OBD_LIFETIME_ODOMETER, path: odometer, unit: km }
        - { type: OBD_TOTAL_ENGINE_TIME, path: hours, unit: h }`,
  more: 'plausibility: { engine_hours: { action: flag } }',
})

test('a value that is not plausible is counted at the device, in the status and in the metrics', async () => {
  const pipeline = await startPipeline({ config })
  const wild = { v: 999_999, odometer: 526_385_151.875, hours: 300_000 }
  const payloadAt = (ts: number) => JSON.stringify({ ts, lat: 52.5, lon: 13.4, ...wild })
  await pipeline.publish('truck-1', payloadAt(Date.now()), payloadAt(Date.now() + 1))
  await pipeline.until(() => pipeline.status().totals.delivered === 2)

  const [received] = pipeline.sandbox.received({ limit: 1 })
  expect(received?.payload).toMatchObject({ gps: { latitude: 52.5 }, signals: [{ value: '300000' }] })
  expect(JSON.stringify(received)).not.toMatch(/999999|526385151/)

  const { ops } = pipeline.gateway.addresses
  const seen = JSON.parse((await get(ops, '/devices/truck-1')).text) as { withheld: unknown }
  const counted = { source: 'trucks', reason: 'above maximum', count: 2 }
  expect(seen.withheld).toEqual([
    { ...counted, field: 'speed', isSent: false, lastValue: 999_999 },
    { ...counted, field: 'OBD_LIFETIME_ODOMETER', isSent: false, lastValue: 526_385_151.875 },
    { ...counted, field: 'OBD_TOTAL_ENGINE_TIME', isSent: true, lastValue: 300_000 },
  ])
  expect(pipeline.status().mapping).toMatchObject({
    omitted: [
      { source: 'trucks', field: 'speed', reason: 'above maximum', values: 2 },
      { source: 'trucks', field: 'OBD_LIFETIME_ODOMETER', reason: 'above maximum', values: 2 },
    ],
    flagged: [{ source: 'trucks', field: 'OBD_TOTAL_ENGINE_TIME', reason: 'above maximum', values: 2 }],
  })
  const { text } = await get(ops, '/metrics')
  expect(text).toContain(
    'gateway_fields_omitted_total{source="trucks",field="speed",reason="above_maximum"} 2\n',
  )
  expect(text).toContain(
    'gateway_fields_flagged_total{source="trucks",field="OBD_TOTAL_ENGINE_TIME",reason="above_maximum"} 2\n',
  )
  const { stdout } = await runCli(['devices', '--url', ops])
  expect(stdout).toContain('device "truck-1": speed omitted 2 x: above maximum, last 999999')
})
