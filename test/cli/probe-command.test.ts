import { describe, expect, test } from 'vitest'
import { runCli } from '../support/cli-world.ts'
import { startPipeline } from '../support/pipeline-world.ts'

const unauthorized = (pipeline: Awaited<ReturnType<typeof startPipeline>>) => () =>
  pipeline.status().providers[0]?.endpoint === 'unauthorized'

async function refusedPipeline() {
  const pipeline = await startPipeline({ sandbox: { faults: { status: { 403: 1 } } } })
  const device = await pipeline.device('truck-7')
  device.publish({
    topic: 'telemetry/v1/truck-7',
    payload: JSON.stringify({ ts: Date.now(), lat: 60.1, lon: 24.9 }),
  })
  await pipeline.until(unauthorized(pipeline))
  return pipeline
}

describe('probe', () => {
  test('retries at once what would wait ten minutes, and prints the result', async () => {
    const pipeline = await refusedPipeline()
    pipeline.sandbox.setFaults([])
    const { status, stdout, stderr } = await runCli(['probe', '--url', pipeline.gateway.addresses.control])
    expect(stderr).toBe('')
    expect(status).toBe(0)
    expect(stdout).toMatch(/^default +available +- /m)
    await pipeline.until(() => pipeline.status().totals.delivered === 1)
    expect(pipeline.status().conditions).toEqual([])
  })

  test('prints the next attempt of a failing endpoint, and where to look', async () => {
    const pipeline = await refusedPipeline()
    const { requests } = pipeline.sandbox.stats()
    const { status, stdout } = await runCli(['probe', '--url', pipeline.gateway.addresses.control])
    expect(status).toBe(1)
    expect(stdout).toMatch(/^default +unauthorized +in (8|9|10|11|12)\.?\d*\s?m/m)
    expect(stdout).toContain('`status` shows the reason.')
    expect(pipeline.sandbox.stats().requests).toBe(requests + 1)
    const json = await runCli(['probe', '--json', '--url', pipeline.gateway.addresses.control])
    const aTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) as string
    expect(JSON.parse(json.stdout)).toMatchObject({
      now: aTime,
      providers: [{ name: 'default', endpoint: 'unauthorized', nextAttemptAt: aTime, inFlight: 0 }],
    })
  })
})
