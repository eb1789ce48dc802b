import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
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
})
