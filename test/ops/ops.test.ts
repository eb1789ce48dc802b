import { describe, expect, test } from 'vitest'
import { Secret } from '../../src/std/secret.ts'
import type { ProviderName } from '../../src/domain/ids.ts'
import { createOps } from '../../src/ops/ops.ts'
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
    world.ops.ready()
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
      { ops: opsConfig(), log: { level: 'info' } },
    )
    expect(() => ops.emit({ kind: 'from_tomorrow' } as never)).not.toThrow()
    expect(output.text()).toContain('event_not_recorded')
  })
})
