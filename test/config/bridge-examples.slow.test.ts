// config/examples/bridge-*.yaml: those that say that they were run are run, with a real Mosquitto.

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connectAsync } from 'mqtt'
import { describe, expect, test } from 'vitest'
import { sandboxAccount } from '../../src/sandbox/sandbox.ts'
import { createAuthority } from '../support/certificates.ts'
import { eventually } from '../support/eventually.ts'
import { newFolder } from '../support/folders.ts'
import { hasMosquitto, startMosquitto, type Mosquitto, type MosquittoOptions } from '../support/mosquitto.ts'
import { startPipeline, type Pipeline } from '../support/pipeline-world.ts'

const folder = new URL('../../config/examples/', import.meta.url)
const textOf = (file: string) => readFileSync(new URL(file, folder), 'utf8')

const secrets = {
  BROKER_PASSWORD: 'open sesame',
  FLESPI_TOKEN: 'token',
  TTS_API_KEY: 'key',
  GATEWAY_NAME: 'gateway-1',
}

const keys = {
  AWS_ACCESS_KEY_ID: sandboxAccount.accessKeyId,
  AWS_SECRET_ACCESS_KEY: sandboxAccount.secret.reveal(),
}

const authority = createAuthority()
const own = authority.issue({ names: ['gateway'] })

/** The files that examples name. */
async function filesBeside(): Promise<string> {
  const place = await newFolder()
  const files = { 'ca.pem': authority.ca, 'gateway.pem': own.cert, 'gateway.key': own.key }
  for (const [name, text] of Object.entries(files)) await writeFile(join(place, name), text, { mode: 0o600 })
  return place
}

describe.skipIf(!hasMosquitto)('an example runs against Mosquitto', () => {
  async function startBroker(options: MosquittoOptions = {}) {
    const passwords = join(await newFolder(), 'passwords')
    const password = (...words: readonly string[]) =>
      execFileSync('/usr/bin/mosquitto_passwd', ['-b', ...words], { stdio: 'ignore' })
    password('-c', passwords, 'gateway', secrets.BROKER_PASSWORD)
    password(passwords, 'my-app@ttn', secrets.TTS_API_KEY)
    const files = { ...options.files, passwords: readFileSync(passwords, 'utf8') }
    return startMosquitto({ ...options, files, lines: ['password_file %d/passwords'] })
  }

  async function start(
    file: string,
    url: string,
    { name = 'gateway-1', more = '' }: { name?: string; more?: string } = {},
  ): Promise<Pipeline> {
    const text = textOf(file)
    return startPipeline({
      folder: await filesBeside(),
      config: (baseUrl) =>
        text
          .replace(/url: mqtts?:\/\/[\w.]+:\d+/, `url: ${url}${more}`)
          .replace('http://127.0.0.1:8081', baseUrl)
          .replace('127.0.0.1:8080', '127.0.0.1:0'),
      deps: { env: { ...secrets, ...keys, GATEWAY_NAME: name } },
    })
  }

  async function publish(
    port: number,
    pipelines: readonly Pipeline[],
    messages: readonly { topic: string; payload: string }[],
  ): Promise<void> {
    const isConnected = ({ gateway }: Pipeline) =>
      gateway
        .status()
        .messageSources.some(({ connections }) => connections.some(({ state }) => state === 'connected'))
    await eventually(() => pipelines.every(isConnected))
    const client = await connectAsync(`mqtt://127.0.0.1:${port}`)
    for (const { topic, payload } of messages) await client.publishAsync(topic, payload, { qos: 1 })
    await client.endAsync()
    await eventually(() => sum(pipelines) === messages.length)
  }

  const readings = (count: number) =>
    Array.from({ length: count }, (_, index) => ({
      topic: 'telemetry/v1/truck-7',
      payload: JSON.stringify({ ts: Date.now() - index * 1000, gps: { lat: 51.3, lon: 9.4 } }),
    }))

  const sum = (pipelines: readonly Pipeline[]) =>
    pipelines.reduce((total, { sandbox }) => total + sandbox.stats().payloadsAccepted, 0)

  async function onTheSameMachine(): Promise<void> {
    const { port } = await startBroker()
    await publish(port, [await start('bridge-mosquitto-local.yaml', `mqtt://127.0.0.1:${port}`)], readings(1))
  }

  async function overTls(): Promise<void> {
    const { cert, key } = authority.issue()
    const tls = ['cafile %d/ca.pem', 'certfile %d/cert.pem', 'keyfile %d/key.pem', 'require_certificate true']
    const files = { 'ca.pem': authority.ca, 'cert.pem': cert, 'key.pem': key }
    const { ports } = await startBroker({ listeners: [[], tls], files })
    await publish(
      ports[0] ?? 0,
      [await start('bridge-remote-tls.yaml', `mqtts://localhost:${ports[1]}`)],
      readings(1),
    )
  }

  async function threeGateways(): Promise<void> {
    const { port } = await startBroker()
    const gateways = await Promise.all(
      ['gateway-1', 'gateway-2', 'gateway-3'].map((name) =>
        start('bridge-shared.yaml', `mqtt://127.0.0.1:${port}`, { name }),
      ),
    )
    await publish(port, gateways, readings(30))
    for (const { sandbox } of gateways) expect(sandbox.stats().payloadsAccepted).toBeGreaterThan(0)
  }

  /** Mosquitto over TLS in place of the product, with its topics and messages. */
  async function inPlaceOf(
    startProduct: (options: MosquittoOptions) => Promise<Mosquitto>,
    file: string,
    message: { topic: string; payload: string },
  ): Promise<void> {
    const { cert, key } = authority.issue()
    const { ports } = await startProduct({
      listeners: [[], ['cafile %d/ca.pem', 'certfile %d/cert.pem', 'keyfile %d/key.pem']],
      files: { 'ca.pem': authority.ca, 'cert.pem': cert, 'key.pem': key },
    })
    const more = '\n      tls: { ca: "${file:ca.pem}" }'
    const gateway = await start(file, `mqtts://localhost:${ports[1]}`, { more })
    await publish(ports[0] ?? 0, [gateway], [message])
  }

  // The user is the token, without a password: Mosquitto cannot check that.
  const flespi = () =>
    inPlaceOf(startMosquitto, 'bridge-flespi.yaml', {
      topic: 'flespi/message/gw/devices/4530001',
      payload: JSON.stringify({
        ident: '861230040000001',
        timestamp: Date.now() / 1000,
        'position.latitude': 52.52,
        'position.longitude': 13.4,
      }),
    })

  const theThingsStack = () =>
    inPlaceOf(startBroker, 'bridge-the-things-stack.yaml', {
      topic: 'v3/my-app@ttn/devices/trailer-1/up',
      payload: JSON.stringify({
        end_device_ids: { device_id: 'trailer-1', application_ids: { application_id: 'my-app' } },
        received_at: new Date().toISOString(),
        uplink_message: {
          f_port: 1,
          f_cnt: 17,
          frm_payload: 'AAAA',
          decoded_payload: { latitude: 51.3, longitude: 9.4 },
          received_at: new Date().toISOString(),
        },
      }),
    })

  // At the same time: most of it is waiting.
  test(
    'on the same machine; over TLS; with three gateways, of which one gets each message; in place of products',
    { timeout: 240_000 },
    async () => {
      const ran = await Promise.allSettled([
        onTheSameMachine(),
        overTls(),
        threeGateways(),
        flespi(),
        theThingsStack(),
      ])
      expect(ran.map((one) => (one.status === 'rejected' ? String(one.reason) : 'ok'))).toEqual(
        ran.map(() => 'ok'),
      )
    },
  )
})
