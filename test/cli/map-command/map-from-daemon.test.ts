// What a command does with dead letters is in test/cli/transcripts.

import { describe, expect, test } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { runCli } from '../../support/cli-world.ts'
import { startPipeline, topicOf, type Pipeline } from '../../support/pipeline-world.ts'

async function publish(pipeline: Pipeline, clientId: string, payloads: readonly string[]): Promise<void> {
  const device = await pipeline.device(clientId)
  for (const [index, payload] of payloads.entries())
    device.publish({ topic: topicOf(clientId), payload, messageId: index + 1 })
  await device.acked(payloads.length)
}

const foreign = '{"ts":1750000000000,"gps":{"lat":51.3,"lon":9.4}}'

function answersIn(stdout: string): Record<string, unknown>[] {
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
}

describe('map --from-tap', () => {
  test('maps what arrives at the daemon, until --count', async () => {
    const pipeline = await startPipeline()
    const url = pipeline.gateway.addresses.control
    const args = ['map', '--preset', 'simulator', '--from-tap', '--url', url, '--count', '2']
    let isDone = false
    const ran = runCli(args).finally(() => (isDone = true))
    let sent = 0
    // The tap shows what arrives after it was opened.
    await eventually(async () => {
      sent += 1
      await publish(pipeline, `truck-${sent}`, ['no json', foreign])
      return isDone
    })
    const { status, stdout } = await ran
    expect(status).toBe(1)
    const answers = answersIn(stdout)
    expect(answers).toHaveLength(2)
    expect(answers).toContainEqual(expect.objectContaining({ unmappable: expect.anything() }))
    expect(answers).toContainEqual(
      expect.objectContaining({
        topic: expect.stringMatching(/^telemetry\/v1\/truck-/),
        payloads: [expect.objectContaining({ gps: { latitude: 51.3, longitude: 9.4 } })],
      }),
    )
  })

  test('ends with a signal', async () => {
    const pipeline = await startPipeline()
    const stop = new AbortController()
    const args = ['map', '--preset', 'simulator', '--from-tap', '--url', pipeline.gateway.addresses.control]
    const ran = runCli(args, { stop: stop.signal })
    await publish(pipeline, 'truck-1', [foreign])
    stop.abort()
    expect((await ran).status).toBe(0)
  })
})
