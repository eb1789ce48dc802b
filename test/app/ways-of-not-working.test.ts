// The ways in which a gateway looks alive and does not work. Each must be seen: the verdict with its sentence,
// a condition with what, why and what to do, and the metric of that condition. Those that take time, and a daemon
// that is stuck, are in test/system.

import { readFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import type { RequestListener } from 'node:http'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { sandboxAccount } from '../../src/sandbox/sandbox.ts'
import { Secret } from '../../src/std/secret.ts'
import { realDisk } from '../../src/storage/storage.ts'
import { serveHttp } from '../support/http-server.ts'
import { configText } from '../support/config-text.ts'
import { connectBytes, createDevice } from '../support/mqtt-device.ts'
import { createAuthority, type Certificate } from '../support/certificates.ts'
import { get } from '../support/ops-world.ts'
import { startPipeline, type Pipeline, type PipelineOptions } from '../support/pipeline-world.ts'
import { publish, severityOf, type Way } from '../support/ways-world.ts'

const dayMs = 86_400_000

const withPassword = {
  AWS_ACCESS_KEY_ID: sandboxAccount.accessKeyId,
  AWS_SECRET_ACCESS_KEY: sandboxAccount.secret.reveal(),
  PASSWORD: 'right',
}

const withUsers = configText({
  broker:
    '{ listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { users: [{ name: alice, password: "${env:PASSWORD}" }] } }',
})

/** Short waits, so that the thresholds are reached soon. */
const delivery =
  'batch: { max_payloads: 1, linger: 20ms }, timeout: 200ms, backoff: { min: 10ms, max: 100ms }'

const certificate = createAuthority().issue({ until: new Date(Date.now() + 90 * dayMs) })
const expired = createAuthority().issue({
  from: new Date(Date.now() - 3 * dayMs),
  until: new Date(Date.now() - dayMs),
})

const withCertificate = (own: Certificate): PipelineOptions => ({
  config: withTls(own),
  deps: { env: { ...withPassword, TLS_KEY: own.key } },
})
const configs: Record<string, PipelineOptions> = {
  users: { config: withUsers, deps: { env: withPassword } },
  TLS: withCertificate(certificate),
  'an expired certificate': withCertificate(expired),
  'another account': { sandbox: { accounts: [{ accessKeyId: 'OTHER', secret: new Secret('other') }] } },
}

const acts: Record<string, (pipeline: Pipeline) => Promise<void>> = {
  nothing: async () => {},
  publish,
  'publish many': (pipeline) => publish(pipeline, 20),
  'guess passwords': guessPasswords,
  'connect without a user': connectWithoutUser,
  'speak TLS': (pipeline) => failToConnect(pipeline, (port) => connectTls({ host: '127.0.0.1', port })),
  'speak TLS from many addresses': (pipeline) => failToConnect(pipeline, connectTlsFrom()),
  'speak MQTT without TLS': (pipeline) =>
    failToConnect(pipeline, (port) => {
      const socket = connectTcp(port, '127.0.0.1')
      socket.write(connectBytes('truck-1'))
      return socket
    }),
  'share a client id': shareClientId,
  'change the config': changeConfig,
}

type Case = Pick<Way, 'name' | 'options' | 'code' | 'verdict'> & Record<'sentence' | 'cure', string>
const ways = parse(readFileSync(new URL('ways-of-not-working.yaml', import.meta.url), 'utf8')) as (Case & {
  config?: string
  act?: string
})[]

describe('a gateway that does not work is seen where', () => {
  test.each(ways)('$name', async ({ options, config, act = 'publish', code, verdict, sentence, cure }) => {
    const own = config === undefined ? options : configs[config]!
    const pipeline = await startPipeline({ sections: { delivery }, ...own })
    await acts[act]!(pipeline)
    const seen = { code, verdict, sentence: new RegExp(sentence), cure: new RegExp(cure) }
    expect(await severityOf(pipeline, seen)).not.toBe('info')
  })

  test.each<[string, RequestListener]>([
    ['answers 404', (_, response) => response.writeHead(404).end('not found')],
    ['redirects', (_, response) => response.writeHead(302, { location: 'http://127.0.0.1:9/login' }).end()],
    ['shows a login page', (_, response) => response.end('<!doctype html><title>Login</title>')],
  ])('another server %s: the config is named, and not the service', async (_, listener) => {
    const baseUrl = await serveHttp((request, response) => {
      request.resume()
      request.on('end', () => listener(request, response))
    })
    const pipeline = await startPipeline({ baseUrl, sections: { delivery } })
    await publish(pipeline)
    const seen = {
      verdict: 'not_delivering' as const,
      sentence: /Cannot deliver|refuses/,
      cure: /delivery\.base_url/,
    }
    expect(await severityOf(pipeline, { code: 'ENDPOINT_UNAVAILABLE', ...seen })).not.toBe('info')
  })

  test('the disk is full, and it is ready again when there is room', async () => {
    let freeBytes = 0
    const disk = { ...realDisk, free: () => Promise.resolve({ bytes: freeBytes, files: Infinity }) }
    const pipeline = await startPipeline({ deps: { disk } })
    const seen = { verdict: 'not_receiving' as const, sentence: /^The disk of the spool/, cure: /Free space/ }
    expect(await severityOf(pipeline, { code: 'DISK_LOW', ...seen })).not.toBe('info')
    const { ops } = pipeline.gateway.addresses
    expect((await get(ops, '/readyz')).status).toBe(503)
    expect((await get(ops, '/healthz')).status).toBe(200)
    freeBytes = 1e12
    await pipeline.until(() => pipeline.status().ready)
    expect((await get(ops, '/readyz')).status).toBe(200)
    expect(pipeline.status().verdict).toBe('ok')
  })

  test('dead letters are left from before the start', async () => {
    const before = await startPipeline()
    await before.publish('truck-1', 'no JSON')
    await before.gateway.stop('test')
    const pipeline = await startPipeline({ folder: before.folder })
    const seen = {
      verdict: 'degraded' as const,
      sentence: /1 dead letter from before/,
      cure: /dead-letters list/,
    }
    expect(await severityOf(pipeline, { code: 'DEAD_LETTERS_WAITING', ...seen })).not.toBe('info')
  })
})

async function guessPasswords(pipeline: Pipeline): Promise<void> {
  const port = Number(new URL(pipeline.gateway.addresses.mqtt[0] ?? '').port)
  // Refusals are delayed: side by side they take a second.
  const codes = Array.from({ length: 10 }, async (_, n) => {
    const device = await createDevice({ port, clientId: `truck-${n}` })
    onTestFinished(() => device.destroy())
    const credentials = { username: `user-${n}`, password: Buffer.from('wrong') }
    return (await device.connect(credentials)).returnCode
  })
  expect(new Set(await Promise.all(codes))).toEqual(new Set([4]))
}

async function connectWithoutUser(pipeline: Pipeline): Promise<void> {
  const port = Number(new URL(pipeline.gateway.addresses.mqtt[0] ?? '').port)
  for (let n = 0; n < 25; n += 1) {
    const device = await createDevice({ port, clientId: `truck-${n}` })
    onTestFinished(() => device.destroy())
    expect((await device.connect()).returnCode).toBe(5)
  }
}

/** As often as it takes to be sure. */
async function failToConnect(pipeline: Pipeline, connect: (port: number) => Socket): Promise<void> {
  const port = Number(new URL(pipeline.gateway.addresses.mqtt[0] ?? '').port)
  for (let n = 0; n < 5; n += 1) {
    const socket = connect(port)
    onTestFinished(() => void socket.destroy())
    socket.on('error', () => socket.destroy())
    await new Promise<void>((resolve) => socket.once('close', () => resolve()))
  }
}

/** Each time from another address. */
function connectTlsFrom(): (port: number) => Socket {
  let host = 1
  return (port) => {
    host += 1
    return connectTls({ socket: connectTcp({ host: '127.0.0.1', port, localAddress: `127.0.0.${host}` }) })
  }
}

async function shareClientId(pipeline: Pipeline): Promise<void> {
  for (let n = 0; n < 7; n += 1) await pipeline.device('truck-1')
}

async function changeConfig({ folder, gateway }: Pipeline): Promise<void> {
  const path = join(folder, 'gateway.yaml')
  const text = await readFile(path, 'utf8')
  await writeFile(path, text.replace('max_bytes: 32MiB', 'max_bytes: 2GiB'))
  await gateway.reload('test')
}

function withTls({ cert }: Certificate): (baseUrl: string) => string {
  const tls = `tls: { cert: ${JSON.stringify(cert)}, key: "\${env:TLS_KEY}" }`
  const broker = `listeners: [{ url: "mqtts://127.0.0.1:0", ${tls} }], access: { anonymous: true }`
  return configText({ broker: `{ ${broker} }` })
}
