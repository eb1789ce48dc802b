import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { connectAsync } from 'mqtt'
import { describe, expect, onTestFinished, test } from 'vitest'
import { checkBridge } from '../../../src/ingest/bridges/bridges.ts'
import { createAuthority } from '../../support/certificates.ts'
import { eventually } from '../../support/eventually.ts'
import { newFolder } from '../../support/folders.ts'
import { hasMosquitto, startMosquitto } from '../../support/mosquitto.ts'
import { openScriptedBroker, type BrokerScript } from '../../support/scripted-broker.ts'
import { parseMqttBridges } from '../../support/mqtt-bridges.ts'

const like = (pattern: RegExp) => expect.stringMatching(pattern) as string
const never = new AbortController().signal

function check(url: string, options: Record<string, unknown> = {}) {
  const [bridge] = parseMqttBridges([
    { name: 'depot', url, topics: ['t/+', 'u/#'], client_id: 'gw', ...options },
  ])
  return checkBridge(bridge!, never)
}

async function checkAt(script: BrokerScript, options: Record<string, unknown> = {}) {
  await using broker = await openScriptedBroker(script)
  const finding = await check(`mqtt://127.0.0.1:${broker.port}`, options)
  return { finding, broker, url: `mqtt://127.0.0.1:${broker.port}` }
}

/** A server that does `serve` with each connection. */
async function portOf(server: ReturnType<typeof createServer>): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

describe('a bridge is tried', () => {
  test.each([5, '3.1.1'])('without consuming anything, by MQTT %s', async (protocol) => {
    await using broker = await openScriptedBroker({
      connack: (_connect, index) => {
        // Messages of the topics, before the answer to the subscription.
        queueMicrotask(() =>
          broker.connections[index]?.send(
            { cmd: 'publish', topic: 't/1', payload: 'old', qos: 1, messageId: 9, retain: true, dup: false },
            { cmd: 'publish', topic: 't/1', payload: 'new', qos: 0, retain: false, dup: false },
          ),
        )
        return {}
      },
    })
    const url = `mqtt://127.0.0.1:${broker.port}`
    const group = { protocol, share_group: 'all', connections: 2, username: 'ann', password: 'secret' }
    const version = protocol === 5 ? 'MQTT 5' : 'MQTT 3.1.1'
    expect(await check(url, group)).toEqual({
      state: 'ok',
      what: `depot: ${url} accepts the connection (${version}), and grants QoS 1 for t/+, QoS 1 for u/#.`,
    })
    await eventually(() => broker.connections[0]?.closed === true)
    const [connection] = broker.connections
    expect(broker.connections).toHaveLength(1)
    expect(connection?.connect.clientId).toMatch(/^gw-check-[0-9a-f]{4}$/)
    expect(connection?.connect).toMatchObject({ clean: true, username: 'ann' })
    expect(connection?.connect.properties?.sessionExpiryInterval ?? 0).toBe(0)
    expect(connection?.received.map(({ cmd }) => cmd)).toEqual(['subscribe', 'subscribe', 'disconnect'])
    expect(connection?.received[1]).toMatchObject({
      subscriptions: [{ topic: '$SYS/broker/version' }, { topic: '$SYS/broker/clients/disconnected' }],
    })
    expect(connection?.received[0]).toMatchObject({ subscriptions: [{ topic: 't/+' }, { topic: 'u/#' }] })
  })

  test.each([
    [4, '3.1.1', 'The broker refuses the user name or the password.', /`username` and `password`/],
    [134, 5, 'The broker refuses the user name or the password.', /`username` and `password`/],
    [5, '3.1.1', 'The user may not connect.', /access rules/],
    [135, 5, 'The user may not connect.', /access rules/],
    [1, '3.1.1', 'The broker does not know this version of MQTT.', /newer broker/],
    [132, 5, 'The broker does not know MQTT 5.', /protocol: 3\.1\.1/],
    [2, '3.1.1', like(/^The broker refuses the client id "gw-check-/), /client id of its own/],
    [137, 5, 'The broker is busy.', /tries again/],
    [200, 5, 'The broker refuses the connection with code 200.', /operator/],
  ])('the refusal %i of MQTT %s has a cure', async (code, protocol, why, act) => {
    const connack = () => (protocol === 5 ? { reasonCode: code } : { returnCode: code })
    const { finding, url } = await checkAt({ connack }, { protocol, username: 'ann', password: 'secret' })
    expect(finding).toEqual({
      state: 'failed',
      what: `depot: ${url} cannot be used.`,
      why,
      act: like(act),
    })
  })

  test('a topic that is not granted, and one with QoS 0', async () => {
    const refused = await checkAt({ granted: () => [1, 135] })
    expect(refused.finding).toMatchObject({
      state: 'failed',
      what: `depot: ${refused.url} cannot be used.`,
      why: 'The broker refuses the subscription to "u/#" (code 135). The user may not read these topics.',
      act: 'Give the user the right to subscribe at the broker.',
    })
    const old = await checkAt({ granted: () => [128, 1] }, { protocol: '3.1.1' })
    expect(old.finding.why).toContain('"t/+" (code 128)')
    const low = await checkAt({ granted: () => [0, 1] })
    expect(low.finding).toMatchObject({
      state: 'warning',
      what: like(/only QoS 0 for t\/\+\.$/),
    })
    expect((await checkAt({ granted: () => [0, 0] }, { qos: 0 })).finding.state).toBe('ok')
  })

  test('a broker that has no shared subscriptions', async () => {
    const script = { connack: () => ({ properties: { sharedSubscriptionAvailable: false } }) }
    expect((await checkAt(script, { share_group: 'all' })).finding.state).toBe('failed')
    expect((await checkAt(script)).finding.state).toBe('ok')
  })

  test('a broker that does not answer the subscription', async () => {
    const { finding } = await checkAt({ mute: true }, { connect_timeout: '100ms' })
    expect(finding).toMatchObject({
      state: 'failed',
      why: like(/no answer in connect_timeout/),
    })
  })

  test('an address without a broker: nothing there, no such host, no MQTT, a server that closes', async () => {
    const silent = createServer()
    const port = await portOf(silent)
    await new Promise((resolve) => silent.close(resolve))
    expect((await check(`mqtt://127.0.0.1:${port}`)).why).toMatch(
      /^Nothing listens on 127\.0\.0\.1:\d+ \(ECONNREFUSED\)\.$/,
    )
    expect((await check('mqtt://no-such-host.invalid')).why).toMatch(
      /^The host name "no-such-host\.invalid" (does not exist|cannot be)/,
    )
    const http = await portOf(createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')))
    expect(await check(`mqtt://127.0.0.1:${http}`)).toMatchObject({
      why: `The answer of 127.0.0.1:${http} is not MQTT: it is an HTTP server.`,
      act: like(/MQTT port/),
    })
    expect((await check(`mqtts://127.0.0.1:${http}`)).why).toMatch(/^There is no TLS on 127\.0\.0\.1:/)
    expect((await check(`ws://127.0.0.1:${http}/mqtt`)).why).toMatch(/HTTP status 400 on the path "\/mqtt"/)
    const other = await portOf(createServer((socket) => socket.end('INFO {"server_id":"x"}\r\n')))
    expect((await check(`mqtt://127.0.0.1:${other}`)).why).toMatch(
      /is not MQTT: it is the own protocol of NATS/,
    )
    expect((await check(`ws://127.0.0.1:${other}`)).why).toMatch(/is not HTTP, so it is no WebSocket/)
    const closing = await portOf(createServer((socket) => socket.destroy()))
    expect((await check(`mqtt://127.0.0.1:${closing}`)).why).toMatch(
      /^The broker closes the connection to 127\.0\.0\.1:\d+ without an answer/,
    )
  })

  test('a certificate of an unknown authority, or for another name', async () => {
    const authority = createAuthority()
    const { cert, key } = authority.issue({ names: ['broker.example'] })
    const port = await portOf(createTlsServer({ cert, key }, (socket) => socket.on('error', () => undefined)))
    const url = `mqtts://127.0.0.1:${port}`
    expect(await check(url)).toMatchObject({
      why: like(/no intermediate one, and it is not signed by a public authority/),
      act: like(/`tls.ca`/),
    })
    expect(await check(url, { tls: { ca: authority.ca } })).toMatchObject({
      why: 'The certificate of the broker is for "broker.example", not for 127.0.0.1 (ERR_TLS_CERT_ALTNAME_INVALID).',
      act: like(/tls.server_name/),
    })
    const named = { tls: { ca: authority.ca, server_name: 'broker.example' }, connect_timeout: '200ms' }
    expect((await check(url, named)).why).toMatch(/sends no CONNACK in connect_timeout/)
  })
})

describe.skipIf(!hasMosquitto)('a bridge to Mosquitto is tried', () => {
  test('beside a running one, which keeps its connection and gets every message; a wrong password', async () => {
    const passwords = join(await newFolder(), 'passwords')
    execFileSync('/usr/bin/mosquitto_passwd', ['-c', '-b', passwords, 'ann', 'secret'], { stdio: 'ignore' })
    const { port } = await startMosquitto({
      files: {
        passwords: readFileSync(passwords, 'utf8'),
        acl: 'user ann\ntopic read t/#\ntopic write t/#\n',
      },
      lines: ['password_file %d/passwords', 'acl_file %d/acl'],
    })
    const url = `mqtt://127.0.0.1:${port}`
    const login = { username: 'ann', password: 'secret' }
    const running = await connectAsync(url, { ...login, clientId: 'gw', clean: false, protocolVersion: 5 })
    onTestFinished(() => running.endAsync(true))
    const got: string[] = []
    let closes = 0
    running.on('message', (_topic, bytes) => got.push(bytes.toString()))
    running.on('close', () => (closes += 1))
    await running.subscribeAsync('$share/all/t/+', { qos: 1 })
    await running.publishAsync('t/1', 'stored', { qos: 1, retain: true })
    const options = { ...login, topics: ['t/+'], share_group: 'all' }
    for (const protocol of [5, '3.1.1'])
      expect(await check(url, { ...options, protocol })).toMatchObject({ state: 'ok' })
    for (let index = 0; index < 20; index += 1) await running.publishAsync('t/1', `m${index}`, { qos: 1 })
    await eventually(() => got.length === 21)
    expect(closes).toBe(0)
    for (const protocol of [5, '3.1.1']) {
      const wrong = await check(url, { ...options, protocol, password: 'wrong' })
      expect(wrong).toMatchObject({
        state: 'failed',
        act: like(/`username` and `password`/),
      })
    }
  })
})
