// Clients of others that publish. What is not installed is skipped. They subscribe, too: test/system/client-programs.test.ts.

import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { openIngest, textOf } from '../support/ingest-world.ts'
import { auto } from '../support/memory-intake-spool.ts'

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

const placeOf = (port: number) => ['-h', '127.0.0.1', '-p', `${port}`, '-t', 'depot/truck']
const programs = {
  'mosquitto_pub with MQTT 3.1.1': (port: number, qos: string) =>
    run(mosquittoPub, [...placeOf(port), '-q', qos, '-m', 'x', '-V', 'mqttv311'], { timeout: 20_000 }),
  'mosquitto_pub with MQTT 5': (port: number, qos: string) =>
    run(mosquittoPub, [...placeOf(port), '-q', qos, '-m', 'x', '-V', 'mqttv5'], { timeout: 20_000 }),
  paho: (port: number, qos: string) => run(python, ['-c', pahoScript, `${port}`, qos], { timeout: 20_000 }),
}

const cases = Object.entries(programs).flatMap(([name, program]) =>
  ['0', '1', '2'].map((qos) => [name, qos, program] as const),
)

test.for(cases)('[MQTT3-7.0.0-2] %s publishes with QoS %s', async ([name, qos, program], { skip }) => {
  skip(name === 'paho' ? !hasPaho : !hasMosquitto)
  const spool = auto()
  await using world = await openIngest(spool)
  await program(world.port, qos)
  const texts = name === 'paho' ? Array.from({ length: 10 }, (_, index) => `paho ${index}`) : ['x']
  await spool.ended(texts.length)
  await new Promise(setImmediate)
  expect(spool.payloads.map(textOf)).toEqual(texts)
})
