import { describe, expect, test } from 'vitest'
import { GatewayError } from '../../src/std/gateway-error.ts'
import { Secret } from '../../src/std/secret.ts'
import type { ProviderName } from '../../src/domain/ids.ts'
import { createOps } from '../../src/ops/ops.ts'
import { eventSamples } from '../support/event-samples.ts'
import {
  get,
  handClock,
  keptOutput,
  opsConfig,
  lane,
  opsWorld,
  provider,
  stages,
  statusOf,
} from '../support/ops-world.ts'

const name = 'default' as ProviderName

describe('before the other stages exist', () => {
  test('the HTTP server answers that the gateway is live and not ready', async () => {
    await using world = opsWorld()
    await world.ops.start()
    const url = world.ops.url()
    expect(await get(url, '/healthz')).toMatchObject({ status: 200, text: 'ok\n' })
    expect(await get(url, '/readyz')).toMatchObject({
      status: 503,
      text: '{"ready":false,"reason":"starting"}\n',
    })
    expect(await statusOf(url)).toMatchObject({
      version: '1.2.3',
      ready: false,
      providers: [],
      lanes: [],
      conditions: [],
    })
    expect((await get(url, '/metrics')).text).toContain('gateway_ready 0')
  })

  test('a port in use is reported with what, why and what to do', async () => {
    await using first = opsWorld()
    await first.ops.start()
    const port = Number(new URL(first.ops.url() ?? '').port)
    await using second = opsWorld({ ops: opsConfig({ host: '127.0.0.1', port }) })
    await expect(second.ops.start()).rejects.toMatchObject({
      code: 'ADDRESS_IN_USE',
      what: expect.stringContaining(`127.0.0.1:${port}`),
      act: expect.stringContaining('ops.listen'),
    })
  })

  test('an address of another machine is reported', async () => {
    await using world = opsWorld({ ops: opsConfig({ host: '192.0.2.1', port: 0 }) })
    await expect(world.ops.start()).rejects.toMatchObject({ code: 'ADDRESS_UNAVAILABLE' })
  })
})

describe('the gateway is ready from gateway_ready until it stops', () => {
  test('the answer has the reason', async () => {
    await using world = opsWorld()
    await world.ops.start()
    const url = world.ops.url()
    await world.ops.ready()
    expect(await get(url, '/readyz')).toMatchObject({ status: 200, text: '{"ready":true,"reason":null}\n' })
    world.ops.stopping('SIGTERM')
    expect(await get(url, '/readyz')).toMatchObject({
      status: 503,
      text: '{"ready":false,"reason":"stopping: SIGTERM"}\n',
    })
    expect((await get(url, '/healthz')).status).toBe(200)
  })

  test('after the stop the port is closed', async () => {
    const world = opsWorld()
    await world.ops.start()
    const url = world.ops.url()
    await world.ops.stop()
    await expect(fetch(`${url}/healthz`)).rejects.toThrow('fetch failed')
  })
})

describe('a gateway that refuses its spool', () => {
  const fault = new GatewayError('SPOOL_DAMAGED', { what: 'Bad.', why: 'A table is bad.', act: 'Repair it.' })

  test('shows what the start does, then the reason, and is ready after the repair', async () => {
    await using world = opsWorld()
    const { ops } = world
    await ops.start()
    const reason = async () => JSON.parse((await get(ops.url(), '/readyz')).text) as { reason: string | null }
    ops.starting('checking the spool: 1 of 20 GiB')
    expect(await reason()).toMatchObject({ reason: 'checking the spool: 1 of 20 GiB' })
    ops.refusing(fault)
    expect(await reason()).toMatchObject({ ready: false, reason: 'SPOOL_DAMAGED: A table is bad.' })
    expect((await get(ops.url(), '/healthz')).status).toBe(200)
    ops.starting('checking the spool: 2 of 20 GiB')
    await ops.ready()
    // The check of a reopening does not make the gateway unready: the condition of the lost store says it.
    ops.starting('checking the spool: 3 of 20 GiB')
    expect(await reason()).toMatchObject({ ready: true, reason: null })
  })

  test('shows nothing of the stages that were closed, and counts from zero', async () => {
    await using world = opsWorld()
    const { ops } = world
    ops.attach(stages({ providers: [provider('default')], lanes: [lane(1)] }))
    ops.emit(eventSamples.endpoint_unavailable)
    ops.emit(eventSamples.clock_unknown)
    ops.emit(eventSamples.spool_refused)
    ops.detach()
    expect(ops.status()).toMatchObject({ providers: [], lanes: [], totals: { payloads: 0 } })
    expect(ops.status().conditions.map(({ code }) => code)).toEqual(['SPOOL_DAMAGED', 'CLOCK_UNKNOWN'])
    ops.emit(eventSamples.spool_recovered)
    expect(ops.status().conditions.map(({ code }) => code)).toEqual(['CLOCK_UNKNOWN'])
  })
})

describe('no output contains a secret', () => {
  test('neither the log nor the status nor the metrics', async () => {
    await using world = opsWorld()
    const secret = new Secret('hunter2-very-secret')
    world.ops.attach(
      stages({
        providers: [Object.assign(provider('default'), { lastRequestId: secret })],
        lanes: [lane(1)],
      }),
    )
    world.ops.emit({ kind: 'credentials_failed', provider: name, why: String(secret) })
    world.ops.emit(Object.assign({ kind: 'listener_opened' as const, url: '' }, { url: secret }))
    await world.ops.start()
    const out = [world.output.text()]
    for (const path of ['/status', '/metrics', '/', '/readyz'])
      out.push((await get(world.ops.url(), path)).text)
    expect(out.join('\n')).not.toContain('hunter2')
    expect(out.join('\n')).toContain('***')
  })
})

describe('emit never throws', () => {
  test('an event that the table does not have is reported as not recorded', () => {
    const output = keptOutput()
    const ops = createOps(
      { clock: handClock(), version: '1', stdout: output.stream, env: {} },
      { ops: opsConfig(), log: { level: 'info' }, spoolPath: '/nowhere' },
    )
    expect(() => ops.emit({ kind: 'from_tomorrow' } as never)).not.toThrow()
    expect(output.text()).toContain('event_not_recorded')
  })
})
