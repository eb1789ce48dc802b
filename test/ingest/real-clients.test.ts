import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { openIngest, textOf, type IngestWorld } from '../support/ingest-world.ts'
import { createMemoryIntakeSpool } from '../support/memory-intake-spool.ts'

const run = promisify(execFile)
const mosquittoPub = '/usr/bin/mosquitto_pub'
const python = '/usr/bin/python3'

const hasMosquitto = existsSync(mosquittoPub)
const hasPaho = await run(python, ['-c', 'import paho.mqtt.client']).then(
  () => true,
  () => false,
)

/** Publishes ten messages with QoS `argv[3]`, waits for their acks, then leaves; without sleeping. */
const pahoScript = `
import sys, paho.mqtt.client as mqtt
client = mqtt.Client(client_id='paho', clean_session=False)
client.connect('127.0.0.1', int(sys.argv[1]), keepalive=30)
client.loop_start()
sent = [client.publish('depot/paho', 'paho %d' % n, qos=int(sys.argv[2])) for n in range(10)]
for one in sent:
    one.wait_for_publish()
client.disconnect()
client.loop_stop()
`

async function mosquitto(world: IngestWorld, ...more: string[]): Promise<{ stderr: string }> {
  const where = ['-h', '127.0.0.1', '-p', String(world.port), '-t', 'depot/truck']
  return run(mosquittoPub, [...where, ...more], { timeout: 20_000 })
}

describe('real MQTT clients', () => {
  test.skipIf(!hasMosquitto).each([0, 1, 2])(
    '[MQTT3-7.0.0-2] mosquitto_pub publishes with QoS %i (skipped where it is not installed)',
    async (qos) => {
      const spool = createMemoryIntakeSpool({ commits: 'auto' })
      await using world = await openIngest(spool)
      for (const text of ['one', 'two'])
        await mosquitto(world, '-q', String(qos), '-i', 'truck', '-m', text, '-V', 'mqttv311')
      await spool.ended(2)
      await new Promise(setImmediate)
      expect(spool.payloads.map(textOf)).toEqual(['one', 'two'])
    },
  )

  test.skipIf(!hasMosquitto)('mosquitto_pub -l publishes a stream of lines with QoS 1', async () => {
    const spool = createMemoryIntakeSpool({ commits: 'auto' })
    await using world = await openIngest(spool)
    const lines = Array.from({ length: 500 }, (_, index) => `line ${index}`)
    const where = ['-h', '127.0.0.1', '-p', String(world.port), '-t', 'depot/truck']
    const child = spawn(mosquittoPub, [...where, '-q', '1', '-l'], { stdio: ['pipe', 'ignore', 'ignore'] })
    child.stdin.end(`${lines.join('\n')}\n`)
    expect((await once(child, 'exit'))[0]).toBe(0)
    expect(spool.payloads.map(textOf)).toEqual(lines)
  })

  test.skipIf(!hasMosquitto).each(['0', '1', '2'])(
    'mosquitto_pub publishes by MQTT 5 with QoS %s',
    async (qos) => {
      const spool = createMemoryIntakeSpool({ commits: 'auto' })
      await using world = await openIngest(spool)
      await mosquitto(world, '-q', qos, '-m', 'x', '-V', 'mqttv5')
      await spool.ended(1)
      await new Promise(setImmediate)
      expect(spool.payloads.map(textOf)).toEqual(['x'])
    },
  )

  test.skipIf(!hasPaho).each([0, 1, 2])(
    'paho publishes with QoS %i (skipped where it is not installed)',
    async (qos) => {
      const spool = createMemoryIntakeSpool({ commits: 'auto' })
      await using world = await openIngest(spool)
      await run(python, ['-c', pahoScript, String(world.port), String(qos)], { timeout: 20_000 })
      await spool.ended(10)
      await new Promise(setImmediate)
      expect(spool.payloads.map(textOf)).toEqual(Array.from({ length: 10 }, (_, index) => `paho ${index}`))
    },
  )
})
