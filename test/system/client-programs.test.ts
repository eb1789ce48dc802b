// Client programs and libraries as they are installed, against the real daemon, plain and TLS. Each publishes with a
// password; the payloads must reach the service. A program that the machine lacks is skipped, with a message.

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { connectAsync } from 'mqtt'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fleetUser, openHostileWorld, type HostileWorld } from '../hostile/hostile-world.ts'
import { eventually } from '../support/eventually.ts'
import { connectBytes, publishBytes } from '../support/mqtt-device.ts'

const run = promisify(execFile)
const python = '/usr/bin/python3'
const programs = { mosquitto_pub: '/usr/bin/mosquitto_pub', openssl: '/usr/bin/openssl' }
const hasPaho = await run(python, ['-c', 'import paho.mqtt.client']).then(
  () => true,
  () => false,
)
const missing = [
  ...Object.entries(programs).flatMap(([name, path]) => (existsSync(path) ? [] : [name])),
  ...(hasPaho ? [] : ['python3-paho-mqtt']),
]
if (missing.length > 0)
  process.stderr.write(`Not tested, because it is not installed: ${missing.join(', ')}\n`)

const topic = 'telemetry/v1/truck-1'
const kinds = [
  ['TCP', false],
  ['TLS', true],
] as const

/** Publishes each argument from the fifth on with QoS 1, also subscribes, and leaves when all are acknowledged. */
const pahoScript = `
import sys, paho.mqtt.client as mqtt
port, version, ca, password = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
client = mqtt.Client(client_id='paho', clean_session=None if version == 5 else False, protocol=version)
client.username_pw_set('fleet', password)
if ca: client.tls_set(ca)
client.will_set('status/paho', 'gone', qos=1)
client.on_connect = lambda client, *_: client.subscribe('commands/#', qos=1)
client.connect('localhost', port, keepalive=30)
client.loop_start()
sent = [client.publish('${topic}', text, qos=1) for text in sys.argv[5:]]
for one in sent: one.wait_for_publish()
client.disconnect()
client.loop_stop()
`

describe('client programs against the real daemon', () => {
  let folder = ''
  let world: HostileWorld
  let caFile = ''

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gateway-clients-'))
    world = await openHostileWorld(folder)
    caFile = join(folder, 'ca.pem')
    await writeFile(caFile, world.ca)
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  let published = 0
  /** Numbers of payloads that no other test publishes, and their messages. */
  function messages(count: number): { numbers: number[]; texts: string[] } {
    const numbers = Array.from({ length: count }, () => (published += 1))
    const gps = { lat: 51, lon: 9 }
    return { numbers, texts: numbers.map((n) => JSON.stringify({ ts: world.firstTime + n, gps })) }
  }

  /** Those of them that are at the service, when all are or the time of the test is over. */
  async function arrived(numbers: readonly number[]): Promise<number[]> {
    const found = () => {
      const received = new Set(world.service.arrivals.map(({ ts }) => ts - world.firstTime))
      return numbers.filter((number) => received.has(number))
    }
    await eventually(() => found().length === numbers.length)
    return found()
  }

  const mosquitto = (tls: boolean, ...more: readonly string[]) =>
    run(
      programs.mosquitto_pub,
      [
        '-h',
        'localhost',
        '-p',
        String(world.port(tls ? 'tls' : 'tcp')),
        '-u',
        fleetUser.name,
        '-P',
        fleetUser.password,
      ].concat(tls ? ['--cafile', caFile] : [], ['-t', topic], more),
      { timeout: 20_000 },
    )

  describe.each(kinds)('over %s', (_name, tls) => {
    test.skipIf(!existsSync(programs.mosquitto_pub)).each(['mqttv31', 'mqttv311', 'mqttv5'])(
      'mosquitto_pub with %s publishes with QoS 0, 1 and 2',
      async (version) => {
        const { numbers, texts } = messages(3)
        for (const [qos, text] of texts.entries())
          await mosquitto(tls, '-V', version, '-q', String(qos), '-m', text)
        expect(await arrived(numbers)).toEqual(numbers)
      },
    )

    test.skipIf(!existsSync(programs.mosquitto_pub))(
      'mosquitto_pub with a wrong password is refused',
      async () => {
        await expect(mosquitto(tls, '-P', 'guess', '-q', '1', '-m', 'x')).rejects.toThrow(
          /bad user name or password|not authori[sz]ed/i,
        )
      },
    )

    test.skipIf(!hasPaho).each([3, 4, 5])(
      'paho with protocol level %i publishes and subscribes in a stored session',
      async (level) => {
        const { numbers, texts } = messages(10)
        const ca = tls ? caFile : ''
        const args = [
          String(world.port(tls ? 'tls' : 'tcp')),
          String(level),
          ca,
          fleetUser.password,
          ...texts,
        ]
        await run(python, ['-c', pahoScript, ...args], { timeout: 20_000 })
        expect(await arrived(numbers)).toEqual(numbers)
      },
    )

    test.each([
      ['MQTT 3.1', { protocolId: 'MQIsdp', protocolVersion: 3 }],
      ['MQTT 3.1.1', { protocolId: 'MQTT', protocolVersion: 4 }],
    ] as const)('mqtt.js with %s publishes and subscribes', async (_version, options) => {
      const { numbers, texts } = messages(10)
      const client = await connectAsync({
        ...options,
        ...(tls ? { protocol: 'mqtts', ca: world.ca } : { protocol: 'mqtt' }),
        host: 'localhost',
        port: world.port(tls ? 'tls' : 'tcp'),
        username: fleetUser.name,
        password: fleetUser.password,
        reconnectPeriod: 0,
      })
      expect(await client.subscribeAsync('commands/#', { qos: 1 })).toMatchObject([{ qos: 1 }])
      await Promise.all(texts.map((text) => client.publishAsync(topic, text, { qos: 1 })))
      await client.endAsync()
      expect(await arrived(numbers)).toEqual(numbers)
    })
  })

  describe.skipIf(!existsSync(programs.openssl))('openssl s_client', () => {
    /** Its output until `wanted`, or its end. */
    async function client(
      args: readonly string[],
      { input = Buffer.alloc(0), wanted }: { input?: Buffer; wanted: string },
    ): Promise<string> {
      const to = ['-connect', `localhost:${world.port('tls')}`, '-CAfile', caFile, '-servername', 'localhost']
      const child = spawn(programs.openssl, ['s_client', ...to, ...args], { stdio: 'pipe' })
      let text = ''
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk: Buffer) => {
          text += chunk.toString('latin1')
          if (text.includes(wanted)) child.kill()
        })
      child.stdin.on('error', () => undefined)
      child.stdin.write(input)
      await once(child, 'close')
      return text
    }

    test.each(['-tls1_2', '-tls1_3'])('verifies the certificate with %s', async (version) => {
      const wanted = 'Verify return code: 0 (ok)'
      expect(await client([version, '-verify_return_error'], { wanted })).toContain(wanted)
    })

    test.each(['-tls1', '-tls1_1'])('gets no connection with %s', async (version) => {
      const wanted = 'Cipher is (NONE)'
      expect(await client([version, '-cipher', 'ALL:@SECLEVEL=0'], { wanted })).toContain(wanted)
    })

    test('gets CONNACK and PUBACK for packets of MQTT', async () => {
      const { numbers, texts } = messages(1)
      const login = { username: fleetUser.name, password: Buffer.from(fleetUser.password) }
      const input = Buffer.concat([
        connectBytes('openssl', login),
        publishBytes({ topic, payload: texts[0] ?? '', messageId: 0x4142 }),
      ])
      const answers = '\x20\x02\x00\x00\x40\x02AB'
      expect(await client(['-quiet'], { input, wanted: answers })).toContain(answers)
      expect(await arrived(numbers)).toEqual(numbers)
    })
  })
})
