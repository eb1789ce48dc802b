import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { defaultProvider } from '../../../src/domain/ids.ts'
import { newFolder } from '../../support/folders.ts'
import { createDeliveryWorld, dayMs } from '../../support/delivery-world.ts'
import type { DeliveryWorld } from '../../support/delivery-world.ts'
import { acceptAll, failAll } from '../../support/scripted-service.ts'
import type { Script } from '../../support/scripted-service.ts'

let world: DeliveryWorld

afterEach(() => world.end())

const refuse =
  (status: number): Script =>
  () => ({ status, body: { requestId: 'request-9', message: `answer ${status}` } })

const open = () => world.spool.lanes().reduce((sum, { pending, sealed }) => sum + pending + sealed, 0)

describe('batches by count and linger', () => {
  test('a full batch is sent at once, a single payload after the linger', async () => {
    world = await createDeliveryWorld()
    const ids = await world.publish('a', 'b', 'c', 'd')
    await world.pass(0)
    expect(world.service.received.map(({ payloadIds }) => payloadIds)).toEqual([ids.slice(0, 3)])
    await world.pass(999)
    expect(world.service.received).toHaveLength(1)
    await world.pass(2)
    expect(world.service.received[1]?.payloadIds).toEqual(ids.slice(3))
    expect(open()).toBe(0)
    expect(world.delivery.counters()).toMatchObject({ submissions: 2, delivered: 4, retried: 0, dead: 0 })
  })

  describe('with batches that hardly ever fill', () => {
    const batch = { payloadsMax: 500, bodyBytesMax: 64 * 1024, lingerMs: 1000 }

    test('a payload after a batch that took all others is sent after its own linger', async () => {
      world = await createDeliveryWorld({ provider: { batch } })
      await world.publish('a')
      await world.pass(990)
      await world.publish('b')
      await world.pass(5000)
      expect(open()).toBe(0)
      await world.publish('c')
      await world.pass(1021)
      expect(open()).toBe(0)
    })

    test('a batch that its bytes fill is sent 20 ms after the first of them', async () => {
      world = await createDeliveryWorld({ provider: { batch: { ...batch, bodyBytesMax: 2000 } } })
      await world.publish('a')
      await world.pass(100)
      await world.publish(...Array.from({ length: 20 }, (_, n) => `one of many ${n}`))
      await world.pass(20)
      expect(world.service.received.length).toBeGreaterThan(0)
    })
  })

  test('a step of the wall clock does not delay a single payload', async () => {
    world = await createDeliveryWorld()
    await world.publish('a')
    world.clock.stepWall(-3_600_000)
    await world.pass(1001)
    expect(open()).toBe(0)
  })

  test('a clock that was ahead and is corrected delays no retry', async () => {
    world = await createDeliveryWorld({ script: failAll('Validation') })
    world.clock.stepWall(dayMs)
    await world.publish('a', 'b', 'c')
    await world.pass(5000)
    world.clock.stepWall(-dayMs)
    await world.publish('d', 'e', 'f')
    await world.pass(5000)
    world.service.answer(acceptAll)
    await world.pass(3_600_000)
    expect(world.spool.totals()).toMatchObject({ delivered: 6, dead: 0 })
  })

  test('the pipeline does not spin while backfill uses all its places', async () => {
    world = await createDeliveryWorld({
      script: () => 'hang',
      startNow: false,
      provider: { timeoutMs: 600_000 },
    })
    for (let n = 0; n < 20; n += 1) await world.publish(`a${n}`, `b${n}`, `c${n}`)
    await world.spool.rotate(defaultProvider)
    let looks = 0
    const { lanes } = world.spool
    world.spool.lanes = () => {
      looks += 1
      return lanes()
    }
    world.delivery.start()
    while (world.service.open() < 3) await world.clock.advance(0)
    for (let n = 0; n < 50; n += 1) await world.clock.advance(0)
    looks = 0
    await world.clock.advance(1000)
    expect(looks).toBeLessThan(20)
  })

  test.each([
    { maxInFlight: 3, sent: 6, why: 'as many again are sent while their settles wait for the disk' },
    { maxInFlight: 1, sent: 1, why: 'the next one waits for the settle' },
  ])('with max_in_flight $maxInFlight, $why', async ({ maxInFlight, sent }) => {
    world = await createDeliveryWorld({ startNow: false, provider: { maxInFlight } })
    const lane = () => world.spool.lanes()[0]!.id
    for (let i = 0; i < 8; i += 1) {
      await world.publish(`${i}a`, `${i}b`, `${i}c`)
      await world.spool.seal(lane(), { payloadsMax: 3, bodyBytesMax: 1e6 })
    }
    world.disk.hold()
    world.delivery.start()
    while (world.service.received.length < sent) await world.clock.advance(0)
    for (let i = 0; i < 50; i += 1) await world.clock.advance(0)
    expect(world.service.received).toHaveLength(sent)
    expect(world.delivery.providers()).toMatchObject([{ settling: maxInFlight === 1 ? 0 : maxInFlight }])
    expect(world.spool.totals().delivered).toBe(0)
    world.disk.release()
    await world.pass(1000)
    expect(world.spool.totals().delivered).toBe(24)
    expect(world.service.received).toHaveLength(8)
    expect(world.delivery.providers()).toMatchObject([{ inFlight: 0, settling: 0 }])
  })

  test.each([4, 16])(
    'with %i places a rate limit still lets two batches of a lane go at once',
    async (maxInFlight) => {
      const rate = { payloadsPerS: null, requestsPerS: 1 }
      world = await createDeliveryWorld({ startNow: false, provider: { maxInFlight, rate } })
      for (let n = 0; n < 30; n += 1) await world.publish(`${n}a`, `${n}b`, `${n}c`)
      world.delivery.start()
      let sent = 0
      for (let second = 0; second < 10; second += 1) {
        await world.pass(1000)
        expect(world.service.received.length - sent).toBeLessThanOrEqual(2)
        sent = world.service.received.length
      }
      expect(sent).toBeGreaterThanOrEqual(9)
    },
  )
})

describe('outages', () => {
  test('while everything fails one probe at a time is sent, and then everything arrives', async () => {
    world = await createDeliveryWorld({ script: refuse(500) })
    for (let i = 0; i < 40; i += 1) await world.publish(`${i}a`, `${i}b`, `${i}c`)
    await world.pass(60_000)
    expect(world.delivery.providers()[0]?.endpoint).toBe('unavailable')
    expect(world.changes('ENDPOINT_UNAVAILABLE')).toEqual({ raised: 1, cleared: 0 })
    let mostOpen = 0
    world.service.answer((one, index) => {
      mostOpen = Math.max(mostOpen, world.service.open())
      return refuse(500)(one, index)
    })
    const before = world.service.received.length
    await world.pass(dayMs)
    expect(mostOpen).toBe(1)
    // 60 s at most and 30 s on average between two probes.
    expect(world.service.received.length - before).toBeLessThan((1.3 * dayMs) / 30_000)
    world.service.answer(acceptAll)
    await world.pass(120_000)
    expect(open()).toBe(0)
    expect(world.changes('ENDPOINT_UNAVAILABLE')).toEqual({ raised: 1, cleared: 1 })
    expect(world.spool.totals()).toMatchObject({ delivered: 120, retried: 0, dead: 0 })
  })

  test.each([1, 2, 3, 4])(
    'batches that waited for an isolation are sent when it ends (seed %i)',
    async (seed) => {
      world = await createDeliveryWorld({ script: refuse(500), seed })
      await world.publish('a', 'b', 'c')
      await world.publish('d', 'e', 'f')
      await world.pass(600_000)
      world.service.answer(acceptAll)
      while (world.delivery.providers()[0]?.endpoint !== 'available') await world.pass(10)
      await world.pass(10)
      expect(open()).toBe(0)
    },
  )

  test('a batch that always fails delays no other, and is retried separately', async () => {
    world = await createDeliveryWorld()
    const [poison] = await world.publish('poison', 'x', 'y')
    const script: Script = (one, index) =>
      poison !== undefined && one.payloadIds.includes(poison) ? refuse(500)(one, index) : acceptAll(one)
    world.service.answer(script)
    for (let i = 0; i < 400; i += 1) {
      await world.publish(`${i}a`, `${i}b`, `${i}c`)
      await world.pass(2000)
    }
    expect(open()).toBe(3)
    expect(world.ofKind('endpoint_changed')).toHaveLength(0)
    expect(world.states('BATCH_STUCK')).toMatchObject([{ batches: 1, payloads: 3 }])
    world.service.answer(acceptAll)
    await world.pass(600_000)
    expect(world.changes('BATCH_STUCK')).toEqual({ raised: 1, cleared: 1 })
    expect(open()).toBe(0)
  })
})

describe('403', () => {
  test('for a day costs at most 200 requests and loses nothing, and delivery resumes automatically', async () => {
    world = await createDeliveryWorld({ script: refuse(403) })
    for (let i = 0; i < 10; i += 1) await world.publish(`${i}a`, `${i}b`, `${i}c`)
    await world.pass(dayMs)
    expect(world.delivery.providers()[0]).toMatchObject({
      endpoint: 'unauthorized',
      lastRequestId: 'request-9',
    })
    expect(world.states('ENDPOINT_UNAUTHORIZED')[0]).toMatchObject({
      status: 403,
      accessKeyId: 'AKIDEXAMPLE',
    })
    expect(world.service.received.length).toBeLessThanOrEqual(200)
    world.service.answer(acceptAll)
    await world.pass(12 * 60_000)
    expect(open()).toBe(0)
    expect(world.spool.totals()).toMatchObject({ delivered: 30, dead: 0 })
  })
})

describe('credentials', () => {
  test('that are missing are looked for once, however many batches wait', async () => {
    world = await createDeliveryWorld({
      startNow: false,
      provider: { maxInFlight: 16, credentials: { source: 'environment' } },
    })
    for (let n = 0; n < 20; n += 1) await world.publish(`${n}a`, `${n}b`, `${n}c`)
    world.delivery.start()
    await world.pass(10)
    expect(world.states('CREDENTIALS_MISSING')).toHaveLength(1)
    const next = world.delivery.providers()[0]?.nextAttemptAt ?? 0
    expect(next - world.clock.now()).toBeLessThanOrEqual(5000)
  })

  test('without them nothing is sealed or sent, and that is reported', async () => {
    world = await createDeliveryWorld({ provider: { credentials: { source: 'environment' } } })
    await world.publish('a', 'b', 'c')
    await world.pass(3_600_000)
    expect(world.service.received).toHaveLength(0)
    expect(world.spool.batches()).toHaveLength(0)
    expect(world.states('CREDENTIALS_MISSING')[0]?.why).toMatch(/AWS_ACCESS_KEY_ID is not set/)
    expect(world.changes('CREDENTIALS_MISSING')).toEqual({ raised: 1, cleared: 0 })
    expect(world.delivery.providers()[0]?.endpoint).toBe('unauthorized')
  })
})

describe('stop', () => {
  test('does not wait for credentials that do not arrive', async () => {
    const folder = await newFolder()
    const pipe = join(folder, 'pipe')
    execFileSync('mkfifo', [pipe])
    // Nobody writes into it.
    await writeFile(join(folder, 'config'), `[profile slow]\ncredential_process = timeout 60 cat ${pipe}\n`)
    vi.stubEnv('AWS_CONFIG_FILE', join(folder, 'config'))
    vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', join(folder, 'none'))
    onTestFinished(() => void vi.unstubAllEnvs())
    world = await createDeliveryWorld({ provider: { credentials: { source: 'chain', profile: 'slow' } } })
    await world.publish('a', 'b', 'c')
    await world.clock.advance(0)
    await world.delivery.stop(AbortSignal.abort())
    expect(open()).toBe(3)
  })

  test('aborts a hanging submission at the deadline; its batch stays sealed', async () => {
    world = await createDeliveryWorld({ script: () => 'hang' })
    await world.publish('a', 'b', 'c')
    while (world.service.received.length === 0) await world.clock.advance(0)
    const deadline = new AbortController()
    const stopped = world.delivery.stop(deadline.signal)
    deadline.abort()
    await stopped
    expect(world.spool.batches()).toHaveLength(1)
    expect(world.delivery.counters().outcomes.get('aborted')).toBe(1)
  })
})
