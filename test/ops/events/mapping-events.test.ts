import { noDevices } from '../../../src/domain/device-state.ts'
import { describe, expect, test } from 'vitest'
import type { GatewayEvent } from '../../../src/domain/event.ts'
import { createConditions } from '../../../src/ops/conditions/conditions.ts'
import { createEventConditions } from '../../../src/ops/conditions/event-conditions.ts'
import { GatewayError } from '../../../src/std/gateway-error.ts'
import { get, handClock, ingestCounters, opsWorld, stages, statusOf } from '../../support/ops-world.ts'
import { deviceView, mappingStage } from '../../support/mapping-stage.ts'

const lines = Array.from({ length: 40 }, (_, n) => `devices.csv:${n + 2}  has no device`)
const fault = new GatewayError('DEVICES_INVALID', { what: 'W.', why: lines.join('\n'), act: 'A.' })
const refused: GatewayEvent = { kind: 'mapping_refused', cause: 'a file changed', fault }
const models = (devices: number): GatewayEvent => ({
  kind: 'model_unknown',
  source: 's',
  devices,
  what: 'odometer',
})

const withheld = (devices: number): GatewayEvent => ({
  kind: 'values_withheld',
  source: 's',
  devices,
  device: 'd',
  field: 'speed',
  reason: 'above maximum',
  withheld: 9,
  records: 10,
})
const swapped = (devices: number): GatewayEvent => ({
  kind: 'positions_swapped',
  source: 's',
  devices,
  device: 'd',
})

describe('conditions of the mapping', () => {
  test.each<[string, GatewayEvent, GatewayEvent]>([
    ['MAPPING_STALE', refused, { kind: 'mapping_reloaded', cause: 'c', sources: 1, tookMs: 1 }],
    ['MODEL_UNKNOWN s', models(3), models(0)],
    ['VALUES_WITHHELD s', withheld(3), withheld(0)],
    ['POSITIONS_SWAPPED s', swapped(3), swapped(0)],
    [
      'CLOCK_SUSPECT',
      { kind: 'clock_suspect', skewMs: -3_600_000, devices: 9, judged: 10 },
      { kind: 'clock_trusted' },
    ],
  ])('%s is open while it lasts', (code, begins, ends) => {
    const conditions = createConditions({ clock: handClock() })
    const rules = createEventConditions(conditions)
    const codes = () => conditions.open().map(({ code, key }) => (key === null ? code : `${code} ${key}`))
    rules.apply(begins)
    expect(codes()).toEqual([code])
    rules.apply(ends)
    expect(codes()).toEqual([])
  })

  test('a refused table is shown with every row, here and in the log', async () => {
    await using world = opsWorld()
    world.ops.emit(refused)
    const [condition] = world.ops.status().conditions
    expect(condition).toMatchObject({ code: 'MAPPING_STALE', severity: 'error', why: lines.join('\n') })
    expect(world.output.lines()[0]).toMatchObject({ level: 'error', why: lines.join('\n') })
  })

  test('the condition of the clock says that it is the one of this machine, and how wrong', async () => {
    await using world = opsWorld()
    world.ops.emit({ kind: 'clock_suspect', skewMs: -3_600_000, devices: 9, judged: 10 })
    expect(world.ops.status().conditions[0]?.what).toBe(
      'The clock of this machine is probably wrong: 9 of 10 devices agree that it is 1 h behind.',
    )
  })
})

describe('status', () => {
  test('accounts for messages that are quarantined or open, and for those open at the start', async () => {
    await using world = opsWorld()
    const ingest = ingestCounters({
      received: 14,
      carried: 4,
      mapped: 9,
      quarantined: 5,
      openParts: 4,
    })
    const release = { released: 2, payloads: 2, dead: 1, keptAgain: 0, devices: 0 }
    world.ops.attach({ ...stages({ ingest }), mapping: mappingStage({ release }) })
    const { totals, waiting, internals } = world.ops.status()
    expect(internals.conservation.messages).toEqual({
      received: 14,
      carried: 4,
      split: 0,
      accounted: 18,
      difference: 0,
    })
    expect(totals).toMatchObject({ quarantined: 5, released: 2, unmappable: 1 })
    expect(waiting.openMessages).toBe(4)
  })
})

describe('devices over HTTP', () => {
  const seen = [
    deviceView('a', { skewMs: 10 }),
    deviceView('b/c', { skewMs: -5000, assetId: 'X', listed: true }),
  ]

  test('are listed with the worst clock first on request, and each has a path of its own', async () => {
    await using world = opsWorld()
    await world.ops.start()
    world.ops.attach({ mapping: mappingStage({ skewed: [seen[1]!] }, seen) })
    const url = world.ops.url()
    expect(JSON.parse((await get(url, '/devices?sort=clock')).text)).toEqual({
      now: '2025-06-15T15:06:40.000Z',
      clients: [],
      clientsForgotten: 0,
      total: 2,
      seen: 2,
      states: { ...noDevices(), sending: 2 },
      restored: true,
      devices: [seen[1], seen[0]],
      more: false,
    })
    expect(JSON.parse((await get(url, '/devices?sort=clock&limit=1')).text)).toMatchObject({
      seen: 2,
      devices: [seen[1]],
      more: true,
    })
    expect(JSON.parse((await get(url, '/devices')).text)).toMatchObject({ devices: [seen[0], seen[1]] })
    expect((await get(url, '/devices?sort=name')).status).toBe(400)
    expect(JSON.parse((await get(url, '/devices/b%2Fc')).text)).toEqual({
      now: '2025-06-15T15:06:40.000Z',
      ...seen[1],
      // Of the device records, which this world has not.
      messagesByHour: null,
    })
    expect((await get(url, '/devices/%')).status).toBe(404)
    expect(await statusOf(url)).toMatchObject({ devices: { seen: 2, skewed: [{ device: 'b/c' }] } })
  })

  test('are not there yet before the mapping is in force', async () => {
    await using world = opsWorld()
    await world.ops.start()
    for (const path of ['/devices', '/devices/a', '/dead-letters', '/quarantine'])
      expect((await get(world.ops.url(), path)).status).toBe(503)
  })
})

describe('metrics of the mapping', () => {
  test('are read at the scrape', async () => {
    await using world = opsWorld()
    await world.ops.start()
    world.ops.attach({
      ...stages({
        ingest: ingestCounters({
          openParts: 7,
          quarantinedByReason: [{ source: 'a', reason: 'FUTURE', count: 2 }],
        }),
      }),
      mapping: mappingStage({
        omitted: [{ source: 'a', field: 'speed', reason: 'not a number', values: 4 }],
        clocks: { devices: 1, evictions: 0, future: 2, past: 5, unset: 3, old: 4, restamped: 0 },
      }),
    })
    const { text } = await get(world.ops.url(), '/metrics')
    for (const line of [
      'gateway_messages_open 7',
      'gateway_messages_quarantined_total{source="a",reason="FUTURE"} 2',
      'gateway_fields_omitted_total{source="a",field="speed",reason="not_a_number"} 4',
      'gateway_device_times_total{verdict="unset"} 3',
    ])
      expect(text).toContain(`${line}\n`)
  })
})
