// Clients of MQTT 5 as they are installed, in every QoS, with and without a stored session, while the daemon is
// killed and started again eight times, or KILLS times: each message that a client may send again is delivered once.

import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { connect, type MqttClient } from 'mqtt'
import { expect, onTestFinished, test } from 'vitest'
import { configText } from '../support/config-text.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/mosquitto.ts'
import { startSandbox } from '../support/pipeline-world.ts'
import { startSpawnedDaemon, type SpawnedDaemon } from '../support/spawned-daemon.ts'

const run = promisify(execFile)
const python = '/usr/bin/python3'
const mosquittoPub = '/usr/bin/mosquitto_pub'
const mosquittoSub = '/usr/bin/mosquitto_sub'
const hasPaho = await run(python, ['-c', 'import paho.mqtt.client']).then(
  () => true,
  () => false,
)
const missing = [mosquittoPub, mosquittoSub].filter((path) => !existsSync(path))
if (!hasPaho) missing.push('python3-paho-mqtt')
if (missing.length > 0)
  process.stderr.write(`Not tested with MQTT 5, because it is not installed: ${missing.join(', ')}\n`)

const restarts = Number(process.env['KILLS'] ?? 8)
if (!(restarts >= 1)) throw new Error(`KILLS must be a number of kills, found ${process.env['KILLS']}`)

/** One message a line of its input, from stored session and QoS of its arguments, until the input ends. */
const pahoScript = `
import sys, threading, paho.mqtt.client as mqtt
from paho.mqtt.properties import Properties
from paho.mqtt.packettypes import PacketTypes
port, name, qos, clean = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4] == 'clean'
try: client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=name, protocol=mqtt.MQTTv5)
except AttributeError: client = mqtt.Client(client_id=name, protocol=mqtt.MQTTv5)
client.reconnect_delay_set(0.05, 0.2)
done, waits, acked = threading.Event(), None, 0
def published(*_):
    global acked
    acked += 1
    if waits is not None and acked >= waits: done.set()
client.on_publish = published
connecting = Properties(PacketTypes.CONNECT)
connecting.SessionExpiryInterval = 0 if clean else 3600
client.connect('127.0.0.1', port, keepalive=30, clean_start=mqtt.MQTT_CLEAN_START_FIRST_ONLY if not clean else True, properties=connecting)
client.loop_start()
properties = Properties(PacketTypes.PUBLISH)
properties.UserProperty = ('shift', 'night')
properties.ContentType = 'application/json'
sent = 0
for line in sys.stdin:
    client.publish('t/' + name, line.strip(), qos=qos, properties=properties)
    sent += 1
# A message of QoS 0 that came while there was no connection is lost, and not waited for.
waits = sent if qos > 0 else 0
if acked >= waits: done.set()
if not done.wait(120): sys.exit('not all messages were acknowledged')
client.disconnect()
client.loop_stop()
`

/** Some days ago: not too old, and not from the future. */
const startMs = Date.now() - 7 * 86_400_000

type Publisher = { name: string; qos: 0 | 1 | 2; publish(text: string): void; done(): Promise<unknown> }

function mqttJs(url: string, qos: 0 | 1 | 2, clean: boolean): Publisher {
  const name = `${new URL(url).protocol.slice(0, -1)}-${qos}-${clean ? 'clean' : 'kept'}`
  const client: MqttClient = connect(url, {
    protocolVersion: 5,
    clientId: name,
    clean,
    reconnectPeriod: 50,
    properties: { sessionExpiryInterval: clean ? 0 : 3600 },
  })
  onTestFinished(() => void client.end(true))
  // Each failed connection of a restart.
  client.on('error', () => undefined)
  const sent: Promise<unknown>[] = []
  const properties = { contentType: 'application/json', userProperties: { shift: 'night' } }
  return {
    name,
    qos,
    publish(text) {
      const attempt = (): Promise<unknown> =>
        // A message of QoS 0 is lost with its connection. One of QoS 1 or 2 fails where its connection ends while
        // mqtt.js sends older ones again; then it was not sent.
        client
          .publishAsync(`t/${name}`, text, { qos, properties })
          .catch(() => (qos === 0 ? undefined : attempt()))
      sent.push(attempt())
    },
    async done() {
      await Promise.all(sent)
      await client.endAsync()
    },
  }
}

function paho(port: number, qos: 0 | 1 | 2, clean: boolean): Publisher {
  const name = `paho-${qos}-${clean ? 'clean' : 'kept'}`
  const args = [String(port), name, String(qos), clean ? 'clean' : 'kept']
  const child: ChildProcess = spawn(python, ['-c', pahoScript, ...args], {
    stdio: ['pipe', 'ignore', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const ended = once(child, 'exit')
  return {
    name,
    qos,
    publish: (text) => void child.stdin?.write(`${text}\n`),
    async done() {
      child.stdin?.end()
      expect(await ended).toEqual([0, null])
    },
  }
}

test('[MQTT5-4.3.2-4] [MQTT5-4.4.0-1] messages of QoS 1 and 2 are delivered once over several kills, whatever the client', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'gateway-mqtt5-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await mkdir(folder, { recursive: true })
  const { sandbox, url: serviceUrl } = await startSandbox()
  const port = await freePort()
  const webPort = await freePort()
  const config = join(folder, 'gateway.yaml')
  await writeFile(
    config,
    configText({
      ingest: `
  broker:
    listeners: [{ url: "mqtt://127.0.0.1:${port}" }, { url: "ws://127.0.0.1:${webPort}/mqtt" }]
    access: { anonymous: true }
    limits: { max_messages_per_s: 1000000 }`,
      sources: `
  - name: all
    topic: t/{device}
    map:
      time: { path: ts, format: ms }
      latitude: { path: lat }
      longitude: { path: lon }`,
      delivery: 'batch: { max_payloads: 100, linger: 5ms }',
    })(serviceUrl),
  )
  let daemon: SpawnedDaemon = await startSpawnedDaemon(config)
  const qualities = [0, 1, 2] as const
  const publishers = [
    ...qualities.flatMap((qos) =>
      [true, false].map((clean) => mqttJs(`mqtt://127.0.0.1:${port}`, qos, clean)),
    ),
    ...[true, false].map((clean) => {
      const made = mqttJs(`ws://127.0.0.1:${webPort}/mqtt`, 1, clean)
      return made
    }),
    ...(hasPaho ? qualities.flatMap((qos) => [true, false].map((clean) => paho(port, qos, clean))) : []),
  ]
  const sub = existsSync(mosquittoSub)
    ? spawn(mosquittoSub, ['-V', '5', '-p', String(port), '-i', 'sub', '-t', 'commands/#'], {
        stdio: 'ignore',
      })
    : null
  onTestFinished(() => void sub?.kill('SIGKILL'))
  /** Device and number of each message that must arrive. */
  const expected: string[] = []
  let number = 0
  const textFor = (name: string, qos: number): string => {
    number += 1
    if (qos > 0) expected.push(`${name} ${number}`)
    return JSON.stringify({ ts: startMs + number * 1000, lat: number / 1e4, lon: 13.4 })
  }
  for (let round = 0; round < restarts; round += 1) {
    for (const publisher of publishers)
      for (let count = 0; count < 5; count += 1) {
        publisher.publish(textFor(publisher.name, publisher.qos))
      }
    if (existsSync(mosquittoPub))
      for (const qos of qualities) {
        const session = round % 2 === 0 ? ['-c', '-x', '3600', '-i', `pub-${qos}`] : []
        const name = `pub-${qos}`
        const args = ['-V', '5', '-p', String(port), '-q', String(qos), '-t', `t/${name}`, ...session]
        args.push('-m', textFor(name, qos))
        const property = ['-D', 'publish', 'user-property', 'shift', 'night']
        await run(mosquittoPub, [...args, ...property], { timeout: 30_000 })
      }
    await daemon.kill()
    daemon = await startSpawnedDaemon(config)
  }
  await Promise.all(publishers.map((publisher) => publisher.done()))
  const arrived = () =>
    sandbox.received({ limit: 100_000 }).map(({ payload }) => {
      const { id } = payload['deviceIdentifier'] as { id: string }
      return `${id} ${Math.round(Number(/"latitude":(-?[\d.]+)/.exec(JSON.stringify(payload))?.[1]) * 1e4)}`
    })
  // Their number says nothing: messages of QoS 0 arrive, too.
  await eventually(() => {
    const found = new Set(arrived())
    return expected.every((one) => found.has(one))
  })
  const found = arrived()
  expect(expected.filter((one) => !found.includes(one))).toEqual([])
  // Also those of QoS 0, which a kill may lose.
  expect(new Set(found).size).toBe(found.length)
  expect(sandbox.stats()).toMatchObject({ payloadsFailed: 0 })
  // It connects again by itself.
  expect(sub?.exitCode ?? null).toBeNull()
  await daemon.stop()
}, 400_000)
