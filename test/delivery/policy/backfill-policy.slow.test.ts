import { afterEach, describe, expect, test } from 'vitest'
import { createDeliveryWorld } from '../../support/delivery-world.ts'
import type { DeliveryWorld } from '../../support/delivery-world.ts'
import { acceptAll } from '../../support/scripted-service.ts'
import type { Script } from '../../support/scripted-service.ts'

let world: DeliveryWorld

afterEach(() => world.end())

const hourMs = 3_600_000
const down: Script = () => ({ status: 503, body: { message: 'down' } })

const open = () => world.spool.lanes().reduce((sum, { pending, sealed }) => sum + pending + sealed, 0)
const backfillLanes = () => world.spool.lanes().filter(({ role }) => role.kind === 'backfill')
const livePending = () =>
  world.spool.lanes().find(({ role, pending }) => role.kind === 'live' && pending > 0)?.pending ?? 0

/** What was accepted, payload by payload in that order. */
const accepted: string[] = []
const acceptNoting: Script = (one) => {
  accepted.push(...one.payloadIds)
  return acceptAll(one)
}

async function publishMany(count: number, prefix: string): Promise<readonly string[]> {
  const ids: string[] = []
  for (let at = 0; at < count; at += 10)
    ids.push(
      ...(await world.publish(
        ...Array.from({ length: Math.min(10, count - at) }, (_, i) => `${prefix}-${at + i}`),
      )),
    )
  return ids
}

async function outage(changes: Parameters<typeof createDeliveryWorld>[0], hours: number) {
  accepted.length = 0
  world = await createDeliveryWorld({ script: down, ...changes })
  const ids: string[] = []
  for (let hour = 0; hour < hours; hour += 1) {
    ids.push(...(await publishMany(30, `hour-${hour}`)))
    await world.pass(hourMs)
  }
  return ids
}

const one = { maxInFlight: 1 }

describe('after an outage', () => {
  test('fresh data is sent before the backlog, and all of it arrives', async () => {
    const waited = await outage({ provider: one }, 3)
    world.service.answer((received) => {
      // Fresh data arrives from the first success on.
      const reply = acceptNoting(received, 0)
      if (accepted.length <= 3) void world.publish('fresh-a', 'fresh-b', 'fresh-c')
      return reply
    })
    await world.pass(10 * 60_000)
    expect(open()).toBe(0)
    expect(new Set(accepted).size).toBe(waited.length + 3)
    const places = accepted.flatMap((id, place) => (waited.includes(id) ? [] : [place]))
    // One batch was the probe, a few were sealed before the outage showed, and backfill has its turns.
    expect(Math.max(...places)).toBeLessThan(30)
    expect(world.ofKind('lane_rotated').length).toBeGreaterThan(0)
  })

  test('a backlog is divided by the hour and sent oldest first', async () => {
    const waited = await outage({ provider: one }, 4)
    expect(backfillLanes().length).toBeGreaterThan(1)
    const probed = new Set(world.service.received.flatMap(({ payloadIds }) => payloadIds))
    world.service.answer(acceptNoting)
    await world.pass(10 * 60_000)
    expect(open()).toBe(0)
    // The last hour is live, and batches that were sealed for probes are sent in turn.
    const order = accepted.filter((id) => !probed.has(id)).map((id) => waited.indexOf(id))
    const backlog = order.filter((place) => place < 90)
    expect(backlog.length).toBeGreaterThan(50)
    expect(backlog).toEqual(backlog.toSorted((a, b) => a - b))
  })

  test('a backlog is sent newest first if the config says so', async () => {
    const backfill = {
      afterMs: 900_000,
      shareMin: 0.1,
      shareMax: 1,
      order: 'newest-first' as const,
      rotateEveryMs: hourMs,
    }
    const waited = await outage({ provider: { ...one, backfill } }, 4)
    world.service.answer(acceptNoting)
    await world.pass(10 * 60_000)
    expect(open()).toBe(0)
    const hours = accepted.map((id) => Math.floor(waited.indexOf(id) / 30))
    const firstOf = (hour: number) => hours.indexOf(hour, 12)
    expect(firstOf(2)).toBeLessThan(firstOf(1))
    expect(new Set(accepted).size).toBe(120)
  })
})

describe('every lane gets its share', () => {
  test('a backlog gets its share while live data uses the rest', async () => {
    const waited = await outage({ provider: one }, 2)
    let round = 0
    world.service.answer((received) => {
      // As much fresh data as one batch takes, at every request.
      if (round < 400) {
        round += 1
        void world.publish(`r${round}-a`, `r${round}-b`, `r${round}-c`)
      }
      return acceptNoting(received, 0)
    })
    await world.pass(30_000)
    const drained = accepted.slice(0, 600).filter((id) => waited.includes(id)).length
    expect(drained).toBeGreaterThanOrEqual(50)
    await world.pass(60_000)
    expect(open()).toBe(0)
  })

  test('a live lane that falls behind for longer than backfill.after becomes backfill', async () => {
    accepted.length = 0
    world = await createDeliveryWorld({
      provider: { ...one, rate: { payloadsPerS: null, requestsPerS: 0.01 } },
      script: acceptNoting,
    })
    await publishMany(60, 'early')
    await world.pass(20 * 60_000)
    expect(backfillLanes().reduce((sum, { pending }) => sum + pending, 0)).toBeGreaterThan(0)
    expect(livePending()).toBe(0)
  })
})

describe('configured limits', () => {
  test('limit the payloads per second', async () => {
    world = await createDeliveryWorld({ provider: { rate: { payloadsPerS: 6, requestsPerS: null } } })
    await publishMany(90, 'a')
    await world.pass(10_000)
    const sent = world.service.received.reduce((sum, { payloadIds }) => sum + payloadIds.length, 0)
    expect(sent).toBeGreaterThanOrEqual(50)
    expect(sent).toBeLessThanOrEqual(80)
    await world.pass(60_000)
    expect(open()).toBe(0)
  })
})
