// The plan as a table: one number at a time is changed, and what follows from it.

import { describe, expect, test } from 'vitest'
import { capacityFigures, figuresOf, planCapacity, type CapacityDemand } from '../../src/capacity/capacity.ts'

const hourMs = 3_600_000

/** Round figures, so that a person can follow the sums. */
const figures = figuresOf('rabbitmq', {
  in_cpu_us: 100,
  out_cpu_us: 50,
  in_per_s_max: 20_000,
  flushed_per_s_max: 1000,
  out_per_s_max: 30_000,
  stored_bytes: 80,
  queued_memory_bytes: 10,
  connection_bytes: 50_000,
  user_bytes: 1000,
  node_bytes: 1e8,
  connect_cpu_us: 4000,
  gateway_cpu_us: 40,
  gateway_per_s_max: 10_000,
  gateway_bytes: 3e8,
  payload_bytes: 500,
  spool_share: 0.2,
  batch_payloads: 500,
  request_bytes: 1000,
  busy_share: 0.5,
})

/** 1,000 messages/s, an outage of an hour, ten hours to deliver its backlog. */
const base: CapacityDemand = {
  vehicles: 10_000,
  everyMs: 10_000,
  messageBytes: 320,
  peak: 2,
  outageMs: hourMs,
  drainMs: 10 * hourMs,
  engine: 'rabbitmq',
  flushesEach: false,
  custody: 'delivered',
  gateways: null,
  partitions: 4,
  machines: {
    nodes: 3,
    nodeCores: 2,
    nodeMemoryBytes: 4e9,
    nodeDiskBytes: 100e9,
    gatewayCores: 2,
    spoolBytes: 1e9,
  },
  servicePerS: null,
  uploadBitsPerS: null,
  figures,
}

const planOf = (change: Partial<CapacityDemand> = {}) => planCapacity({ ...base, ...change })
const limitOf = (plan: ReturnType<typeof planOf>, what: RegExp) =>
  plan.limits.find((one) => what.test(one.what))!

describe('a plan', () => {
  test('counts messages', () => {
    expect(planOf().messages).toEqual({ perS: 1000, peakPerS: 2000, perDay: 86_400_000, inOutage: 3_600_000 })
  })

  test('of the engine is borne while one node is lost', () => {
    expect(planOf().engine).toEqual({
      nodes: 3,
      connectionsPerNode: 5000,
      // Base, connections, users, and what waits.
      memoryBytesPerNode: 1e8 + 5000 * 50_000 + 10_000 * 1000 + 3_600_000 * 10,
      coresIn: 0.2,
      coresOut: 0.1,
      // 1,000/s in and 1,100/s out.
      coresInDrain: 0.1 + 0.055,
      coresPerNode: expect.closeTo(0.15, 10),
      keptMessages: 3_600_000,
      diskBytesPerNode: 3_600_000 * 400,
      diskBytesPerHour: 3_600_000 * 400,
      diskLastsMs: (50e9 / (1000 * 400)) * 1000,
      // 3,333 connects of 4 ms on four cores.
      reconnectMs: expect.closeTo(3333.3, 1),
      partitionPerS: 2500,
    })
  })

  test('of the gateways is borne while one of them is lost', () => {
    expect(planOf().gateways).toEqual({
      needed: 1,
      planned: 2,
      perSEach: 2000,
      coresEach: 0.08,
      memoryBytesEach: 3e8,
      spoolBytesEach: 0,
    })
    // 40,000/s at the peak, 5,000/s for each.
    expect(planOf({ vehicles: 200_000 }).gateways).toMatchObject({ needed: 8, planned: 9, perSEach: 5000 })
    expect(planOf({ gateways: 1 }).gateways).toMatchObject({ needed: 1, planned: 1, perSEach: 2000 })
  })

  test('has as many gateways as the drain needs', () => {
    // 3.6 million in 10 minutes, and 1,000/s of new ones.
    expect(planOf({ drainMs: 600_000 }).gateways).toMatchObject({ needed: 2, planned: 3 })
  })

  test('of the delivery counts requests and bits', () => {
    expect(planOf().delivery).toEqual({
      requestsPerS: 4,
      uploadBitsPerS: 8 * (2000 * 500 + 4 * 1000),
      // An hour of messages in ten hours, and the new ones.
      neededPerS: 1100,
      drainPerS: 10_000,
      drainRequestsPerS: 20,
      drainUploadBitsPerS: 8 * (10_000 * 500 + 20 * 1000),
      // 3.6 million, and 9,000/s that new messages leave.
      drainMs: 400_000,
    })
  })

  test.each([
    ['the service', { servicePerS: 4000 }, 4000],
    ['the link', { uploadBitsPerS: 4000 * 8 * 502 }, 4000],
    ['what the engine hands out', { gateways: 10 }, 30_000],
  ])('drains no faster than %s', (_what, change, perS) => {
    const { delivery } = planOf(change)
    expect(delivery.drainPerS).toBeCloseTo(perS)
    expect(delivery.drainMs).toBeCloseTo((3_600_000 / (perS - 1000)) * 1000)
  })

  test('says that a backlog never ends', () => {
    const plan = planOf({ servicePerS: 1000 })
    expect(plan.delivery.drainMs).toBeNull()
    expect(limitOf(plan, /after the outage/).share).toBeGreaterThan(1)
  })

  test('with custody spool keeps in the engine what the spools cannot', () => {
    // 100 bytes for each: 360 MB of 1 GB.
    const spooled = planOf({ custody: 'spool' })
    expect(spooled.gateways.spoolBytesEach).toBe(360e6)
    expect(spooled.engine).toMatchObject({ keptMessages: 0, diskBytesPerNode: 0 })
    const machines = { ...base.machines, spoolBytes: 100e6 }
    const full = planOf({ custody: 'spool', machines })
    expect(full.gateways.spoolBytesEach).toBe(100e6)
    expect(full.engine.keptMessages).toBe(2_600_000)
  })

  test('of one node has one copy of each message, and no other node', () => {
    const { engine } = planOf({ machines: { ...base.machines, nodes: 1 } })
    expect(engine).toMatchObject({
      connectionsPerNode: 10_000,
      coresPerNode: expect.closeTo(0.3, 10),
      diskBytesPerNode: 3_600_000 * 400,
    })
    expect(engine.reconnectMs).toBe(20_000)
  })

  test('of five nodes has three copies', () => {
    const { engine } = planOf({ machines: { ...base.machines, nodes: 5 } })
    expect(engine.connectionsPerNode).toBe(2500)
    expect(engine.diskBytesPerNode).toBeCloseTo((3_600_000 * 400 * 3) / 5)
  })
})

describe('the limits', () => {
  test('stand in the order in which they are reached', () => {
    const shares = planOf({ servicePerS: 5000, uploadBitsPerS: 1e9 }).limits.map(({ share }) => share)
    expect(shares).toHaveLength(11)
    expect(shares).toEqual(shares.toSorted((one, other) => other - one))
  })

  test.each([
    [/engine takes in/, {}, 100_000],
    [/engine takes in/, { flushesEach: true }, 5000],
    [/engine hands out/, {}, 150_000],
    [/cores of a node/, {}, 66_666],
    [/cores of a node/, { drainMs: 600_000 }, 44_444],
    [/after the outage/, { gateways: 2 }, 90_909],
    [/gateways take and deliver/, { gateways: 3 }, 50_000],
    [/payloads a second of the service/, { servicePerS: 4000 }, 20_000],
    [/upload/, { uploadBitsPerS: 2 * 8 * 1_004_000 }, 20_000],
  ])('%s says how many vehicles it bears', (what, change, vehicles) => {
    const limit = limitOf(planOf(change), what)
    expect(limit.vehicles).toBe(vehicles)
    // With as many vehicles, nothing of it is left.
    const { share } = limitOf(planOf({ ...change, vehicles: limit.vehicles! }), what)
    expect(share).toBeCloseTo(1, 3)
  })

  test('memory counts what a node needs without vehicles', () => {
    const limit = limitOf(planOf(), /memory of a node/)
    const { engine } = planOf({ vehicles: limit.vehicles! })
    expect(engine.memoryBytesPerNode).toBeLessThanOrEqual(2e9)
    expect(engine.memoryBytesPerNode).toBeGreaterThan(1.999e9)
  })

  test('more gateways than partitions are too many', () => {
    expect(limitOf(planOf({ gateways: 5 }), /partition/)).toMatchObject({ share: 1.25, vehicles: null })
  })
})

describe('the figures', () => {
  test('of each engine have a unit, a meaning and a source', () => {
    for (const [name, figure] of Object.entries(capacityFigures)) {
      expect(Object.keys(figure.values), name).toEqual(['rabbitmq', 'nats'])
      expect(figure.means, name).toMatch(/^[a-z].*[^.]$/)
      expect(figure.source, name).not.toBe('')
    }
  })

  test('are those of the engine, or those that are given', () => {
    expect(figuresOf('nats').in_cpu_us).toBe(95)
    expect(figuresOf('rabbitmq').in_cpu_us).toBe(115)
    expect(figuresOf('rabbitmq', { in_cpu_us: 7 })).toMatchObject({ in_cpu_us: 7, out_cpu_us: 41 })
  })
})
