import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import { connectAsync } from 'mqtt'
import { describe, expect, test } from 'vitest'
import { collectGarbage } from '../../support/garbage.ts'
import { openIngest, type IngestWorld } from '../../support/ingest-world.ts'
import { createMemoryIntakeSpool } from '../../support/memory-intake-spool.ts'

const auto = () => createMemoryIntakeSpool({ commits: 'auto' })
const run = promisify(execFile)
const mosquittoSub = '/usr/bin/mosquitto_sub'

/** Without garbage. */
function heapBytes(): number {
  collectGarbage()
  return process.memoryUsage().heapUsed
}

async function closed(world: IngestWorld): Promise<void> {
  while (world.ingest.counters().connections > 0) await new Promise(setImmediate)
}

test('200,000 subscriptions leave nothing behind', async () => {
  await using world = await openIngest(auto(), { controlPacketsPerSecondMax: 100_000 })
  const device = await world.device('curious')
  let before = 0
  for (let round = 0; round < 21; round += 1) {
    const subscriptions = Array.from({ length: 10_000 }, (_, n) => ({
      topic: `${round}/${n}`,
      qos: 1 as const,
    }))
    device.send({ cmd: 'subscribe', messageId: round + 1, subscriptions })
    await device.until((received) => received.filter(({ cmd }) => cmd === 'suback').length > round)
    if (round === 0) before = heapBytes()
  }
  expect(world.ingest.counters().subscriptions).toBe(210_000)
  // What the device itself keeps are the 200,000 codes. A filter that is stored costs more than 100 bytes.
  expect(heapBytes() - before).toBeLessThan(10e6)
})

describe('real clients that subscribe', () => {
  test.each([3, 4] as const)('mqtt.js with protocol version %i', async (protocolVersion) => {
    await using world = await openIngest(auto())
    const protocolId = protocolVersion === 3 ? 'MQIsdp' : 'MQTT'
    const options = { protocolVersion, protocolId, clientId: 'js', reconnectPeriod: 0 } as const
    const client = await connectAsync(`mqtt://127.0.0.1:${world.port}`, options)
    const grants = await client.subscribeAsync({ 'commands/js': { qos: 1 }, 'config/#': { qos: 2 } })
    expect(grants.map(({ topic, qos }) => [topic, qos])).toEqual([
      ['commands/js', 1],
      ['config/#', 2],
    ])
    await client.publishAsync('t', 'x', { qos: 1 })
    await client.unsubscribeAsync('commands/js')
    await client.endAsync()
    await closed(world)
    expect([...world.ingest.counters().droppedByReason]).toEqual([])
  })

  test.skipIf(!existsSync(mosquittoSub))(
    'mosquitto_sub stays connected until its own timeout, and gets nothing',
    async () => {
      await using world = await openIngest(auto())
      const args = [
        '-h',
        '127.0.0.1',
        '-p',
        String(world.port),
        '-t',
        'commands/#',
        '-q',
        '1',
        '-d',
        '-W',
        '1',
      ]
      const { stdout } = await run(mosquittoSub, args).catch((error: { stdout: string }) => error)
      expect(stdout).toContain('Subscribed (mid: 1): 1')
      expect(stdout).not.toContain('PUBLISH')
      expect(world.ingest.counters().subscriptions).toBe(1)
    },
  )
})
