// Alerts of a running gateway with real receivers: raised, cleared, tested, changed by a reload.

import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { alertSchema } from '../../src/alerts/alerts.ts'
import { GatewayError } from '../../src/std/gateway-error.ts'
import { systemClock } from '../../src/std/clock.ts'
import { configText, positionMap } from '../support/config-text.ts'
import { startHttpReceiver, type HttpReceiver } from '../support/alert-world.ts'
import { runCli } from '../support/cli-world.ts'
import { eventually } from '../support/eventually.ts'
import { newFolder } from '../support/folders.ts'
import { startPipeline, type Pipeline } from '../support/pipeline-world.ts'

/** Timers forty times as fast: a look each second is one in 25 ms. */
const clock = {
  ...systemClock,
  monotonic: () => systemClock.monotonic() * 40,
  after: (delayMs: number, fire: () => void) => systemClock.after(delayMs / 40, fire),
}

const secrets = { CHAT_URL: '', AWS_ACCESS_KEY_ID: 'K', AWS_SECRET_ACCESS_KEY: 'S' }

const config = (alerts: string, from = 'telemetry/v1/{device}') =>
  configText({
    sources: `[{ name: trucks, topic: '${from}', map: ${positionMap} }]`,
    more: `alerts: ${alerts}`,
  })

async function start(
  alerts: string,
  folder?: string,
): Promise<Pipeline & { write(alerts: string, from?: string): Promise<void> }> {
  const place = folder ?? (await newFolder())
  const pipeline = await startPipeline({
    folder: place,
    clock,
    config: config(alerts),
    deps: { env: secrets },
  })
  const write = (next: string, from?: string) =>
    writeFile(join(place, 'gateway.yaml'), config(next, from)(pipeline.baseUrl))
  return { ...pipeline, write }
}

const bodiesOf = ({ requests }: HttpReceiver) =>
  requests.map(({ body }) => alertSchema.parse(JSON.parse(body)))
const kindsOf = (receiver: HttpReceiver) =>
  bodiesOf(receiver).map(({ changes }) => changes.map(({ kind, code }) => `${kind} ${code}`).join(', '))
const mapping = 'conditions: [MAPPING_STALE]'

describe('a running gateway', () => {
  test('sends what is raised and cleared, also after a reload and a restart; a hanging receiver delays nobody', async () => {
    const chat = await startHttpReceiver()
    const hanging = await startHttpReceiver({ answer: () => undefined })
    const other = await startHttpReceiver()
    const receiver = (name: string, { url }: HttpReceiver) =>
      `{ name: ${name}, type: webhook, url: "${url}/x", ${mapping}, timeout: 2m }`
    const alerts = (...list: string[]) => `{ gateway: depot, wait: 1s, receivers: [${list.join(', ')}] }`
    const both = alerts(receiver('hanging', hanging), receiver('chat', chat))
    const { gateway, write, folder, until, events } = await start(both)
    await write(both, 'wrong/#/topic')
    await eventually(() => chat.requests.length === 1)
    const [raised] = bodiesOf(chat)
    expect(raised).toMatchObject({ gateway: 'depot', receiver: 'chat', severity: 'error', test: false })
    expect(raised?.changes[0]?.why).toContain('topic')
    await eventually(() => hanging.requests.length === 1)

    await write(both)
    await eventually(() => chat.requests.length === 2)
    expect(kindsOf(chat)).toEqual(['raised MAPPING_STALE', 'cleared MAPPING_STALE'])

    // One is removed while it hangs, and one is new: without a restart.
    const others = alerts(receiver('chat', chat), receiver('other', other))
    await write(others)
    await until(() => gateway.status().conditions.every(({ code }) => code !== 'MAPPING_STALE'))
    const control = gateway.addresses.control.replace('unix:', '')
    await eventually(async () => (await runCli(['alerts', '--socket', control])).stdout.includes('other'))
    await write(others, 'wrong/#/topic')
    await eventually(() => other.requests.length === 1 && chat.requests.length === 3)
    const sent = () => events.filter(({ kind }) => kind === 'alert_sent').length
    await eventually(() => sent() >= 4)
    await gateway.stop('restart')
    expect(sent()).toBe(4)

    const state = JSON.parse(readFileSync(join(folder, 'spool/alerts.json'), 'utf8')) as { receivers: object }
    expect(Object.keys(state.receivers)).toEqual(['chat', 'other'])
    const again = await start(others, folder)
    await again.write(others, 'wrong/#/topic')
    await again.until(() => again.status().conditions.some(({ code }) => code === 'MAPPING_STALE'))
    await again.write(others)
    await eventually(() => other.requests.length === 2 && chat.requests.length === 4)
    expect(kindsOf(other)).toEqual(['raised MAPPING_STALE', 'cleared MAPPING_STALE'])
  })

  test('says who is not reached, in the status and to the others', async () => {
    const duty = await startHttpReceiver()
    const broken = await startHttpReceiver({ answer: (response) => void response.writeHead(500).end('down') })
    const { gateway, write, until, status } = await start('{}')
    const alerts = `{ wait: 0s, receivers: [
      { name: broken, type: webhook, url: "${broken.url}", ${mapping} },
      { name: duty, type: webhook, url: "${duty.url}", conditions: [ALERTS_FAILING] } ] }`
    await write(alerts, 'wrong/#/topic')
    await until(() => status().conditions.some(({ code }) => code === 'MAPPING_STALE'))
    // A config with an error puts no receivers in force.
    await write(alerts)
    await until(() => status().conditions.every(({ code }) => code !== 'MAPPING_STALE'))
    await write(alerts, 'wrong/#/topic')
    await eventually(() => duty.requests.length === 1)
    expect(bodiesOf(duty)[0]?.changes).toMatchObject([
      { code: 'ALERTS_FAILING', key: 'broken', why: 'HTTP 500: down.' },
    ])
    const socket = ['--socket', gateway.addresses.control.replace('unix:', '')]
    const { stdout } = await runCli(['alerts', ...socket])
    expect(stdout).toMatch(/broken +webhook +http:\/\/127\.0\.0\.1:\d+ +- +1 +\d+ in a row/)
    expect(stdout).toMatch(/broken: HTTP 500: down\. Next try (in|now)/)
    broken.answer = (response) => void response.end()
    expect((await runCli(['alerts', 'test', ...socket])).status).toBe(0)
    await until(() => status().conditions.every(({ code }) => code !== 'ALERTS_FAILING'))
  })

  test('sends heartbeats while it is healthy, and says what a test of each receiver did', async () => {
    const monitor = await startHttpReceiver()
    const { gateway, until } = await start(
      `{ gateway: depot, receivers: [{ name: hook, type: command, command: [/bin/sh, -c, 'cat >/dev/null; echo no modem; exit 7'] }],
         heartbeats: [{ name: monitor, url: "${monitor.url}/ping", every: 10s }] }`,
    )
    await until(() => monitor.requests.length >= 2)
    expect(monitor.requests[0]).toMatchObject({
      method: 'POST',
      url: '/ping',
      body: expect.stringMatching(/^depot: (ok|degraded)\. /),
    })
    const socket = ['--socket', gateway.addresses.control.replace('unix:', '')]
    const all = await runCli(['alerts', 'test', ...socket])
    expect(all.status).toBe(1)
    expect(all.stdout).toMatch(
      /^failed hook \(command \/bin\/sh\), .*\n +Exit status 7: no modem\n +Run the command by hand/,
    )
    expect(all.stdout).toMatch(/ok +monitor \(heartbeat http:.*\n +HTTP 200: ok/)
    const one = await runCli(['alerts', 'test', 'monitor', ...socket, '--json'])
    expect(JSON.parse(one.stdout)).toMatchObject({ tests: [{ name: 'monitor', ok: true }] })
    const unknown = await runCli(['alerts', 'test', 'nobody', ...socket])
    expect(unknown.status).toBe(1)
    expect(unknown.stderr).toContain('There are: hook, monitor.')
  })

  test('that refuses its spool says so, and its receivers can be tested', async () => {
    const chat = await startHttpReceiver()
    const folder = await newFolder()
    const control = join(folder, 'control.sock')
    const alerts = `{ wait: 1s, receivers: [{ name: chat, type: webhook, url: "${chat.url}" }] }`
    await startPipeline({
      folder,
      clock,
      config: (baseUrl) =>
        config(alerts)(baseUrl).replace('stop_deadline', `control_socket: ${control}, stop_deadline`),
      deps: {
        env: secrets,
        openStore: async () => {
          throw new GatewayError('SPOOL_DISK_FULL', {
            what: 'The disk is full.',
            why: 'No space.',
            act: 'Free some.',
          })
        },
      },
    })
    await eventually(() => kindsOf(chat).includes('raised VERDICT'))
    expect(kindsOf(chat)[0]).toMatch(/^raised SPOOL_/)
    expect(bodiesOf(chat).at(-1)?.changes).toMatchObject([{ key: 'not_receiving', severity: 'critical' }])
    const { stdout, status } = await runCli(['alerts', 'test', '--socket', control])
    expect([status, stdout]).toEqual([0, expect.stringMatching(/^ok +chat/)])
  })

  test('that does not run has its receivers tested by the config', async () => {
    const chat = await startHttpReceiver()
    const folder = await newFolder()
    const path = join(folder, 'gateway.yaml')
    const alerts = `{ gateway: depot, receivers: [{ name: chat, type: webhook, url: "\${env:CHAT_URL}" }] }`
    await writeFile(path, config(alerts)('http://127.0.0.1:1'))
    const env = { ...secrets, CHAT_URL: `${chat.url}/token` }
    const { stdout, stderr, status } = await runCli(['alerts', 'test', '--config', path], { env })
    expect(stderr).toContain('No daemon answers')
    expect([status, stdout]).toEqual([0, expect.stringContaining('HTTP 200: ok')])
    expect(bodiesOf(chat)[0]).toMatchObject({ test: true, changes: [], severity: 'info' })
    const checked = await runCli(['check', '--config', path], { env })
    expect(checked.stdout).toMatch(/alerts +chat: webhook to http:\/\/127\.0\.0\.1:\d+\/\*\*\*, from warning/)
    expect(checked.stdout).not.toContain('token')
  })
})
