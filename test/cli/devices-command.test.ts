import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { configText } from '../support/config-text.ts'
import { runCli } from '../support/cli-world.ts'
import { startPipeline } from '../support/pipeline-world.ts'

const config = configText({
  sources: `
  - name: trucks
    topic: telemetry/v1/{device}
    map:
      time: { path: ts, format: ms }
      signals:
        - { type: OBD_LIFETIME_ODOMETER, path: odometer, unit: km }
        - { type: OBD_TOTAL_ENGINE_TIME, path: hours, unit: h, part: ENGINE }`,
})

async function world() {
  const pipeline = await startPipeline({ config })
  const device = await pipeline.device('truck-7')
  const startedAt = Date.now() - 60_000
  let messageId = 0
  return {
    forget: (...more: string[]) =>
      runCli(['devices', 'forget', ...more, '--socket', join(pipeline.folder, 'spool/control.sock')]),
    /** The values of the payload that was sent; null where nothing was. */
    async send(odometer: number, hours: number): Promise<Record<string, string> | null> {
      messageId += 1
      const { delivered, ignored } = pipeline.status().totals
      const payload = JSON.stringify({ ts: startedAt + messageId * 1000, odometer, hours })
      device.publish({ topic: 'telemetry/v1/truck-7', payload, messageId })
      await device.acked(messageId)
      await pipeline.until(
        () => pipeline.status().totals.delivered > delivered || pipeline.status().totals.ignored > ignored,
      )
      if (pipeline.status().totals.delivered === delivered) return null
      const at = new Date(startedAt + messageId * 1000).toISOString()
      const found = pipeline.sandbox
        .received({ limit: 100 })
        .map(({ payload: one }) => one as unknown as { signalTimestamp: string; signals: Signal[] })
        .find(({ signalTimestamp }) => new Date(signalTimestamp).toISOString() === at)
      return Object.fromEntries((found?.signals ?? []).map(({ type, value }) => [type, value]))
    },
  }
}

type Signal = { type: string; value: string }

describe('devices forget, against a running daemon', () => {
  test('forgets one signal: its next reading counts anew, and the other one is still compared', async () => {
    const { send, forget } = await world()
    expect(await send(500_000, 9000)).toEqual({
      OBD_LIFETIME_ODOMETER: '500000',
      OBD_TOTAL_ENGINE_TIME: '9000',
    })
    // Another unit: both fall.
    expect(await send(12, 3)).toBeNull()
    const { status, stdout } = await forget('truck-7', '--signal', 'OBD_LIFETIME_ODOMETER')
    expect([status, stdout]).toEqual([0, '1 value forgotten. The next reading counts anew.\n'])
    expect(await send(12, 3)).toEqual({ OBD_LIFETIME_ODOMETER: '12' })
    // What it counts anew is compared with from now on.
    expect(await send(500_000, 3)).toBeNull()
  })

  test('forgets everything of a device, and says it where there is nothing', async () => {
    const { send, forget } = await world()
    await send(500_000, 9000)
    expect((await forget('truck-7', '--json')).stdout).toBe(
      '{"device":"truck-7","signal":null,"forgotten":2,"records":1}\n',
    )
    expect(await send(12, 3)).toEqual({ OBD_LIFETIME_ODOMETER: '12', OBD_TOTAL_ENGINE_TIME: '3' })
    for (const args of [['truck-8'], ['truck-7', '--signal', 'FUEL']]) {
      const { status, stdout } = await forget(...args)
      expect([status, stdout]).toEqual([1, 'Nothing was remembered of this device or signal.\n'])
    }
  })
})
