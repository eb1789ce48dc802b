import { expect, test } from 'vitest'
import { configText } from '../support/config-text.ts'
import { runCli } from '../support/cli-world.ts'
import { startPipeline } from '../support/pipeline-world.ts'

const config = configText({ sources: '[{ name: trucks, preset: simulator }]' })

type Sent = { signalTimestamp: number; signals: { type: string; value: string }[] }

test('vehicles of a simulator that starts again are no replaced units', async () => {
  const pipeline = await startPipeline({ config })
  const broker = pipeline.gateway.addresses.mqtt[0] ?? ''
  const run = ['simulate', '--broker', broker, '--devices', '2', '--rate', '50', '--count', '20']
  for (const seed of ['1', '2', '3']) {
    const { status, stderr } = await runCli([...run, '--seed', seed])
    expect([status, stderr]).toEqual([0, ''])
  }
  await pipeline.until(() => pipeline.status().totals.delivered === 60)
  expect(pipeline.status().mapping.omitted).toEqual([])
  const sent = pipeline.sandbox
    .received({ limit: 100 })
    .map(({ payload }) => payload as unknown as Sent & { deviceIdentifier: { id: string } })
    .filter(({ deviceIdentifier }) => deviceIdentifier.id === 'truck-1')
    .sort((a, b) => a.signalTimestamp - b.signalTimestamp)
  expect(sent).toHaveLength(30)
  for (const type of ['OBD_LIFETIME_ODOMETER', 'OBD_TOTAL_ENGINE_TIME']) {
    const values = sent.map(({ signals }) => Number(signals.find((one) => one.type === type)?.value))
    expect(values).toEqual(values.toSorted((a, b) => a - b))
    expect((values.at(-1) ?? 0) - (values[0] ?? 0)).toBeLessThan(2)
  }
})
