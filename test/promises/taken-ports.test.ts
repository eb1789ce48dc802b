// One listener never stops another: a port that is taken at the start, or an address that is not there yet, is a
// condition, everything else runs, and the gateway listens there as soon as it can.

import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { AlertBody } from '../../src/alerts/alert-body.ts'
import { startHttpReceiver } from '../support/alert-world.ts'
import { runCli } from '../support/cli-world.ts'
import { eventually } from '../support/eventually.ts'
import { newFolder } from '../support/folders.ts'
import { createDevice } from '../support/mqtt-device.ts'
import { get } from '../support/ops-world.ts'
import { messageOf, startPipeline, topicOf } from '../support/pipeline-world.ts'
import { configText } from '../support/config-text.ts'
import { startDaemon } from '../support/driver/daemon.ts'

/** Another program that has a port of this machine. */
async function takenPort(): Promise<{ port: number; free(): Promise<unknown> }> {
  const other: Server = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  const free = () => new Promise((resolve) => other.close(resolve))
  onTestFinished(() => void free())
  return { port: (other.address() as AddressInfo).port, free }
}

const brokerOn = (...urls: readonly string[]) =>
  `{ listeners: [${urls.map((url) => `{ url: "${url}" }`).join(', ')}], access: { anonymous: true, anonymous_beyond_loopback: true } }`

async function send(port: number, clientId: string): Promise<void> {
  const device = await createDevice({ port, clientId })
  onTestFinished(() => device.destroy())
  await device.connect()
  device.publish({ topic: topicOf(clientId), payload: messageOf(1), messageId: 1 })
  await device.acked(1)
}

test('a listener that cannot be opened stops no other, and takes devices as soon as its port is free', async () => {
  const taken = await takenPort()
  const url = `mqtt://127.0.0.1:${taken.port}`
  const elsewhere = 'mqtt://192.0.2.1:18883'
  const pipeline = await startPipeline({
    config: configText({ broker: brokerOn(elsewhere, url, 'mqtt://127.0.0.1:0') }),
  })
  const { mqtt } = pipeline.gateway.addresses
  expect(mqtt).toHaveLength(1)
  await send(Number(new URL(mqtt[0]!).port), 'truck-1')
  await pipeline.until(() => pipeline.status().totals.delivered === 1)

  const failed = () => pipeline.status().conditions.filter(({ code }) => code === 'LISTENER_FAILED')
  expect(failed()).toMatchObject([
    { key: elsewhere, severity: 'error', what: `Cannot listen on ${elsewhere}.` },
    { key: url, severity: 'error', what: `Cannot listen on ${url}.` },
  ])
  expect(failed().map(({ why }) => why.split(':')[0])).toEqual(['ADDRESS_UNAVAILABLE', 'ADDRESS_IN_USE'])
  expect(
    failed()
      .map(({ act }) => act)
      .join(),
  ).toMatch(/`ip address`.*tries again.*ss -ltnp.*tries again/)
  expect(pipeline.status()).toMatchObject({ ready: true, verdict: 'degraded' })

  await taken.free()
  await pipeline.until(() => failed().length === 1)
  expect(pipeline.gateway.addresses.mqtt).toContain(url)
  await send(taken.port, 'truck-2')
})

test('a port of devices is named before the one of the page', async () => {
  const [taken, page] = [await takenPort(), await takenPort()]
  const url = `mqtt://127.0.0.1:${taken.port}`
  const pipeline = await startPipeline({
    config: (baseUrl) =>
      configText({ broker: brokerOn(url, 'mqtt://127.0.0.1:0') })(baseUrl).replace(
        'listen: "127.0.0.1:0"',
        `listen: "127.0.0.1:${page.port}"`,
      ),
  })
  await pipeline.until(() => pipeline.codes().length === 2)
  expect(pipeline.codes()).toEqual(['LISTENER_FAILED', 'HTTP_LISTENER_FAILED'])
  expect(pipeline.status().sentence).toContain('LISTENER_FAILED (1 of 2 problems)')
})

test('where no device can come in, the gateway runs, says it, sends the alert, and opens the port when it is free', async () => {
  const receiver = await startHttpReceiver()
  const taken = await takenPort()
  const url = `mqtt://127.0.0.1:${taken.port}`
  const pipeline = await startPipeline({
    config: configText({
      broker: brokerOn(url),
      more: `alerts: { gateway: depot, wait: 1s, receivers: [{ name: chat, type: webhook, url: "${receiver.url}/x" }] }`,
    }),
  })
  const status = () => pipeline.status()
  expect(status().conditions[0]).toMatchObject({ code: 'LISTENER_FAILED', severity: 'critical' })
  expect(status()).toMatchObject({ verdict: 'not_receiving', ready: false, addresses: [] })
  expect(status().sentence).toContain(`Cannot listen on ${url}.`)
  // For the person who has just started it.
  const lines = pipeline.log().split('\n')
  const line = lines.findIndex((one) => one.includes('LISTENER_FAILED'))
  expect(JSON.parse(lines[line]!)).toMatchObject({
    level: 'error',
    event: 'condition_raised',
    act: expect.stringContaining('ss -ltnp'),
  })
  expect(line).toBeLessThan(lines.findIndex((one) => one.includes('gateway_ready')))
  await pipeline.until(() => receiver.requests.length > 0)
  const alert = JSON.parse(receiver.requests[0]!.body) as AlertBody
  expect(alert.changes).toMatchObject([{ kind: 'raised', code: 'LISTENER_FAILED', severity: 'critical' }])

  // Another program answers there: `doctor` does not take it for the gateway.
  const config = join(pipeline.folder, 'gateway.yaml')
  const { stdout } = await runCli(['doctor', '--config', config])
  expect(stdout).toContain(`Cannot listen on ${url}.`)
  expect(stdout).not.toContain(`${url} accepts connections.`)

  await taken.free()
  await pipeline.until(() => status().ready)
  expect(status()).toMatchObject({ verdict: 'ok', addresses: [url] })
  await send(taken.port, 'truck-1')
})

test('a port of the page that is taken stops no device, and commands work meanwhile', async () => {
  const taken = await takenPort()
  const pipeline = await startPipeline({ sections: { ops: `{ listen: "127.0.0.1:${taken.port}" }` } })
  await pipeline.publish('truck-1', messageOf(1))
  await pipeline.until(() => pipeline.status().totals.delivered === 1)
  const { stdout } = await runCli(['status', '--socket', join(pipeline.folder, 'spool.sock')])
  expect(stdout).toMatch(/ERROR +HTTP_LISTENER_FAILED/)
  expect(stdout).toContain(`Cannot listen for HTTP on 127.0.0.1:${taken.port} (ops.listen).`)
  await taken.free()
  await pipeline.until(() => !pipeline.codes().includes('HTTP_LISTENER_FAILED'))
  expect((await get(`http://127.0.0.1:${taken.port}`, '/healthz')).status).toBe(200)
})

test('a daemon that can listen nowhere stays up, says in its log what to do, and stops in order', async () => {
  const folder = await newFolder()
  const [device, page] = [await takenPort(), await takenPort()]
  await writeFile(join(folder, 'no-socket'), '')
  const config = join(folder, 'gateway.yaml')
  const text = configText({
    broker: brokerOn(`mqtt://127.0.0.1:${device.port}`),
    ops: 'control_socket: ./no-socket',
    spool: '{ path: ./spool, allow_in_memory: true, max_bytes: 32MiB, min_free_bytes: 1MiB }',
  })
  await writeFile(config, text('https://ingestion.example').replace('127.0.0.1:0', `127.0.0.1:${page.port}`))
  await using daemon = startDaemon(config)
  await daemon.event('gateway_ready')
  const raised = daemon.lines.filter(({ event, level }) => event === 'condition_raised' && level === 'error')
  const codes = ['LISTENER_FAILED', 'HTTP_LISTENER_FAILED', 'CONTROL_SOCKET_FAILED']
  expect(raised).toMatchObject(codes.map((code) => ({ code })))
  await page.free()
  const isLive = () =>
    fetch(`http://127.0.0.1:${page.port}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    )
  await eventually(isLive)
  expect(await daemon.stop()).toBe('exit 0')
})

// In a network of its own: it begins without an address, and the user of the daemon may use no port below 1024.
const address = 'ip address add 127.0.0.1/8 dev lo'
const permission = 'sysctl -qw net.ipv4.ip_unprivileged_port_start=0'
const inNetworkWith = (first: string): readonly string[] => {
  const begin = `ip link set lo up && ip address delete 127.0.0.1/8 dev lo && ${first} && exec "$@"`
  return ['unshare', '-n', 'sh', '-c', begin, 'sh', 'setpriv', '--bounding-set', '-net_bind_service']
}

function mayHaveNetwork(): boolean {
  const [program = '', ...words] = inNetworkWith(`${address} && ${permission}`)
  try {
    execFileSync(program, [...words, 'true'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

describe.skipIf(!mayHaveNetwork())('a daemon listens without a restart where there was first', () => {
  test.each([
    { no: 'permission for its ports', why: /EACCES/, before: address, after: permission },
    { no: 'such address', why: /EADDRNOTAVAIL/, before: permission, after: address },
  ])('no $no', async ({ why, before, after }) => {
    const folder = await newFolder()
    const config = join(folder, 'gateway.yaml')
    const text = configText({
      broker: brokerOn('mqtt://127.0.0.1:883'),
      spool: '{ path: ./spool, allow_in_memory: true, max_bytes: 32MiB, min_free_bytes: 1MiB }',
    })
    await writeFile(config, text('https://ingestion.example').replace('127.0.0.1:0', '127.0.0.1:80'))
    await using daemon = startDaemon(config, { by: inNetworkWith(before) })
    const inNetwork = (command: string) =>
      execFileSync('nsenter', ['-n', '-t', String(daemon.pid), 'bash', '-c', command])
    await daemon.event('gateway_ready')
    const said = (kind: string) =>
      daemon.lines.filter(({ event, code }) => event === kind && String(code).endsWith('LISTENER_FAILED'))
    expect(said('condition_raised')).toMatchObject([
      { code: 'LISTENER_FAILED', why: expect.stringMatching(why) },
      { code: 'HTTP_LISTENER_FAILED', why: expect.stringMatching(why) },
    ])
    inNetwork(after)
    await eventually(() => said('condition_cleared').length === 2)
    for (const port of [80, 883]) inNetwork(`exec 3<>/dev/tcp/127.0.0.1/${port}`)
  })
})
