import { describe, expect, test } from 'vitest'
import { GatewayError } from '../../src/std/gateway-error.ts'
import { createOps } from '../../src/ops/ops.ts'
import { eventSamples, stateSamples } from '../support/event-samples.ts'
import {
  handClock,
  keptOutput,
  opsConfig,
  lane,
  opsWorld,
  provider,
  stages,
  startedOps,
} from '../support/ops-world.ts'

test('before the other stages exist, the gateway is live and not ready; it is ready until it stops', async () => {
  await using ops = await startedOps()
  const readiness = async () => {
    const { status, text } = await ops.ask('/readyz')
    return [status, text]
  }
  expect(await ops.ask('/healthz')).toMatchObject({ status: 200, text: 'ok\n' })
  expect(await readiness()).toEqual([503, '{"ready":false,"reason":"starting"}\n'])
  expect(await ops.json('/status')).toMatchObject({
    version: '1.2.3',
    ready: false,
    providers: [],
    lanes: [],
    conditions: [],
  })
  expect(await ops.metrics()).toContain('gateway_ready 0')
  await ops.ops.ready()
  expect(await readiness()).toEqual([200, '{"ready":true,"reason":null}\n'])
  ops.ops.stopping('SIGTERM')
  expect(await readiness()).toEqual([503, '{"ready":false,"reason":"stopping: SIGTERM"}\n'])
  expect((await ops.ask('/healthz')).status).toBe(200)
})

describe('a gateway that refuses its spool', () => {
  const fault = new GatewayError('SPOOL_DAMAGED', { what: 'Bad.', why: 'A table is bad.', act: 'Repair it.' })

  test('shows what the start does, then the reason, and is ready after the repair', async () => {
    await using world = await startedOps()
    const { ops } = world
    const reason = () => world.json('/readyz')
    ops.starting('checking the spool: 1 of 20 GiB')
    expect(await reason()).toMatchObject({ reason: 'checking the spool: 1 of 20 GiB' })
    ops.refusing(fault)
    expect(await reason()).toMatchObject({ ready: false, reason: 'SPOOL_DAMAGED: A table is bad.' })
    expect((await world.ask('/healthz')).status).toBe(200)
    ops.starting('checking the spool: 2 of 20 GiB')
    await ops.ready()
    // The check of a reopening does not make the gateway unready: the condition of the lost store says it.
    ops.starting('checking the spool: 3 of 20 GiB')
    expect(await reason()).toMatchObject({ ready: true, reason: null })
  })

  test('shows nothing of the stages that were closed, and counts from zero', async () => {
    await using world = opsWorld()
    const { ops } = world
    const states = [stateSamples.ENDPOINT_UNAVAILABLE]
    ops.attach(stages({ providers: [provider('default')], lanes: [lane(1)], states }))
    expect(ops.status().conditions.map(({ code }) => code)).toEqual(['ENDPOINT_UNAVAILABLE'])
    ops.emit(eventSamples.clock_stepped)
    ops.refusing(fault)
    ops.detach()
    expect(ops.status()).toMatchObject({ providers: [], lanes: [], totals: { payloads: 0 } })
    expect(ops.status().conditions.map(({ code }) => code)).toEqual(['SPOOL_DAMAGED', 'CLOCK_STEPPED'])
    ops.emit(eventSamples.spool_recovered)
    expect(ops.status().conditions.map(({ code }) => code)).toEqual(['CLOCK_STEPPED'])
  })
})

test('an event that the table does not have is reported as not recorded, and throws nothing', () => {
  const output = keptOutput()
  const ops = createOps(
    { clock: handClock(), version: '1', stdout: output.stream, env: {} },
    { ops: opsConfig(), log: { level: 'info' }, spoolPath: '/nowhere' },
  )
  expect(() => ops.emit({ kind: 'from_tomorrow' } as never)).not.toThrow()
  expect(output.text()).toContain('event_not_recorded')
})
