// far-name.ts: runs alone in a network namespace, where `far.test` has two addresses: one over a link with a long delay,
// and one that is not routed. Makes one connection of each kind to it, and prints what came of them as JSON.
// test/system/far-name.test.ts starts it.

import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { createEmail } from '../../src/alerts/receivers/email.ts'
import { sendHttp } from '../../src/alerts/receivers/http-request.ts'
import { checkConnection } from '../../src/delivery/transport/connection-check.ts'
import { createSenderWorker } from '../../src/delivery/transport/sender-worker.ts'
import { transportOptions } from '../../src/delivery/transport/transport-options.ts'
import { openChannel } from '../../src/ingest/amqp/amqp-connection.ts'
import type { AmqpNode, AmqpOptions } from '../../src/ingest/amqp/types.ts'
import { openAttempt } from '../../src/ingest/bridges/bridge-attempt.ts'
import { bridgeOptions } from '../../src/ingest/bridges/bridge-config.ts'
import { openSocket } from '../../src/ingest/bridges/bridge-socket.ts'
import { openConnection } from '../../src/ingest/jetstream/nats-connection.ts'
import { Secret } from '../../src/std/secret.ts'
import { systemClock } from '../../src/std/clock.ts'
import { setAddressAttempts } from '../../src/std/network-faults/address-attempts.ts'
import { providerOptions } from './delivery-world.ts'
import { parseMqttBridges } from './mqtt-bridges.ts'

// As main.ts does.
setAddressAttempts()

const host = 'far.test'
const connectTimeoutMs = 10_000
const tls = { ca: null, cert: null, key: null, serverName: null }

/** Says `greeting`, and `answer` to what comes. Resolves `heard` with the first bytes. */
async function listen(greeting: string, answer: string) {
  const heard = Promise.withResolvers<string>()
  const server = createServer((socket: Socket) => {
    socket.on('error', () => undefined)
    socket.write(greeting)
    socket.on('data', (bytes) => {
      heard.resolve(bytes.toString('latin1').split('\r\n')[0] ?? '')
      socket.write(answer)
    })
  }).listen(0, '0.0.0.0')
  await once(server, 'listening')
  return { port: (server.address() as AddressInfo).port, heard: heard.promise }
}

const http = 'HTTP/1.1 500 Down\r\ncontent-length: 0\r\nconnection: close\r\n\r\n'
const never = new AbortController().signal

async function deliver(changes: Parameters<typeof providerOptions>[1] = {}): Promise<unknown> {
  const { port } = await listen('', http)
  const sender = createSenderWorker()
  const options = { connectTimeoutMs, ...changes }
  const transport = sender.open(transportOptions(providerOptions(`http://${host}:${port}`, options), {}))
  const now = Date.now()
  const { outcome } = await transport.submit({
    operation: 'batch',
    content: { bodyBytes: 2, writeBody: (target) => (target.write('{}'), new Uint32Array()) },
    credentials: { accessKeyId: 'AKID', secretAccessKey: 's' },
    signingAt: now,
    startedAt: now,
    timeoutMs: 20_000,
    stop: never,
  })
  await sender.close()
  return outcome.kind === 'unavailable' ? 'answered' : outcome
}

async function throughProxy(): Promise<unknown> {
  const proxy = await listen('', 'HTTP/1.1 200 OK\r\n\r\n')
  const url = `http://${host}:${proxy.port}`
  return Promise.race([proxy.heard, deliver({ proxy: { from: 'config', url, auth: null } })])
}

async function check(): Promise<unknown> {
  const { port } = await listen('', http)
  const provider = providerOptions(`http://${host}:${port}`)
  for await (const step of checkConnection(provider, { env: {}, stop: never }))
    if (step.name === 'connection') return step.ok ? 'answered' : step
  return 'no step'
}

async function alert(): Promise<unknown> {
  const { port } = await listen('', http)
  const url = new Secret(`http://${host}:${port}/`)
  const target = {
    url,
    headers: new Map(),
    ca: null,
    timeoutMs: 20_000,
    proxy: { from: 'none' as const },
    env: {},
  }
  const sent = await sendHttp(target, { method: 'POST', headers: {}, body: '{}' }, never)
  return sent.kind === 'failed' && sent.why === 'HTTP 500' ? 'answered' : sent
}

async function mail(): Promise<unknown> {
  const { port, heard } = await listen('220 relay\r\n', '250 fine\r\n')
  const receiver = createEmail({
    host,
    port,
    security: 'none',
    login: null,
    ca: null,
    timeoutMs: 20_000,
    sender: 'a@depot.test',
    recipients: ['b@depot.test'],
  })
  const checked = receiver.check(never)
  return Promise.race([heard, checked])
}

async function mqtt(scheme: 'mqtt' | 'ws'): Promise<unknown> {
  const { port, heard } = await listen('', '')
  const socket = openSocket({ scheme, host, port, path: '/mqtt' }, tls, connectTimeoutMs)
  socket.write('CONNECT')
  return Promise.race([heard, once(socket, 'error')])
}

/** Shorter than a round trip to one of the addresses of `two.test`. */
const shortLimitMs = 800

/** The fault of a bridge whose limit ends before its addresses have failed. */
function mqttInVain(scheme: 'mqtt' | 'mqtts'): Promise<unknown> {
  const url = `${scheme}://two.test:1`
  const [bridge] = parseMqttBridges([{ name: 'b', url, topics: ['t/#'], client_id: 'g' }]).map(bridgeOptions)
  return new Promise((resolve) => {
    openAttempt(
      {
        clock: systemClock,
        partition: null,
        room: () => 1,
        take: () => undefined,
        opened: () => resolve('opened'),
        end: (_attempt, { detail }) => resolve(detail),
      },
      { ...bridge!, connectTimeoutMs: shortLimitMs, clientId: 'g', isCheck: false },
    )
  })
}

async function amqpInVain(scheme: 'amqp' | 'amqps'): Promise<unknown> {
  const fault = await amqp({ scheme, host: 'two.test', port: 1 }, shortLimitMs)
  return (fault as { detail: string }).detail
}

async function amqp(other?: AmqpNode, limitMs = connectTimeoutMs): Promise<unknown> {
  const { port, heard } = await listen('', '')
  const node = other ?? { scheme: 'amqp' as const, host, port }
  const options = {
    nodes: [node],
    tls,
    userName: null,
    password: null,
    vhost: '/',
    connectTimeoutMs: limitMs,
  }
  const failed = new Promise((resolve) => {
    const request = {
      options: options as unknown as AmqpOptions,
      credentials: options,
      node,
      label: 'b',
      queue: null,
    }
    void openChannel(systemClock, { ...request, ended: resolve })
  })
  return Promise.race([heard, failed])
}

async function nats(): Promise<unknown> {
  const info = {
    server_id: 'N',
    version: '2.11.0',
    proto: 1,
    host,
    port: 1,
    headers: true,
    max_payload: 1024,
  }
  const { port, heard } = await listen(`INFO ${JSON.stringify(info)}\r\n`, '')
  const opening = openConnection({
    addresses: [{ host, port }],
    member: 'm',
    userName: null,
    password: null,
    token: null,
    tls: null,
    connectTimeoutMs,
  }).catch((error: unknown) => error)
  return Promise.race([heard, opening])
}

const kinds = {
  deliver,
  throughProxy,
  check,
  alert,
  mail,
  mqtt: () => mqtt('mqtt'),
  ws: () => mqtt('ws'),
  amqp: () => amqp(),
  nats,
  mqttInVain: () => mqttInVain('mqtt'),
  mqttsInVain: () => mqttInVain('mqtts'),
  amqpInVain: () => amqpInVain('amqp'),
  amqpsInVain: () => amqpInVain('amqps'),
}
const results = await Promise.all(
  Object.entries(kinds).map(async ([kind, run]) => [kind, await run().catch(String)] as const),
)
process.stdout.write(`${JSON.stringify(Object.fromEntries(results))}\n`)
process.exit(0)
