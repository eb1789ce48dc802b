// What an operator does with held batches, over a real spool and a scripted service.

import { describe, expect, onTestFinished, test } from 'vitest'
import type { HeldReason } from '../../../src/domain/held.ts'
import type { LaneId } from '../../../src/domain/ids.ts'
import type { BatchAction, BatchRequest } from '../../../src/delivery/types.ts'
import type { Batch } from '../../../src/spool/spool.ts'
import { createDeliveryWorld, type DeliveryWorld } from '../../support/delivery-world.ts'
import { payloadNamed } from '../../support/spool-world.ts'
import { collect } from '../../support/open-spool.ts'
import { acceptAll, breakdown, type Script } from '../../support/scripted-service.ts'

const never = new AbortController().signal
const operator = { user: 'root', sudoUser: 'alice' }
const lane = 1 as LaneId

/** The service answers 409 to batchIds of `known` and accepts the others. */
const knows =
  (known: () => readonly string[]): Script =>
  (received) =>
    known().includes(received.batchId)
      ? { status: 409, body: { requestId: 'r-9', message: 'known' } }
      : acceptAll(received)

/** Delivery that starts with held batches of two payloads each. */
async function heldWorld(
  count: number,
  {
    reason = 'repeated',
    ...options
  }: Parameters<typeof createDeliveryWorld>[0] & { reason?: HeldReason } = {},
): Promise<DeliveryWorld & { batches: Batch[]; run: typeof run }> {
  let batches: Batch[] = []
  const script = knows(() => batches.map(({ batchId }) => batchId))
  const world = await createDeliveryWorld({ script, ...options, startNow: false })
  onTestFinished(() => world.end())
  for (let n = 0; n < count; n += 1) await world.publish(`${n}-a`, `${n}-b`)
  const sealed: Batch[] = []
  for (let n = 0; n < count; n += 1) {
    const batch = await world.spool.seal(lane, { payloadsMax: 2, bodyBytesMax: 1e6 })
    const held = { reason, since: world.clock.now() + n, requestId: `r-${n}`, why: 'HTTP 409' }
    sealed.push(await world.spool.setHeld(batch!, held))
  }
  batches = sealed
  world.delivery.start()
  await world.quiet()
  return { ...world, batches, run }

  function run(action: BatchAction, changes: Partial<BatchRequest> = {}) {
    const request: BatchRequest = { action, selection: {}, parts: null, dryRun: false, operator, ...changes }
    return world.delivery.batches.run(request, never)
  }
}

const statesOf = ({ delivery }: Pick<DeliveryWorld, 'delivery'>) =>
  delivery.batches.list({}, 100).batches.map(({ state, held }) => held?.reason ?? state)

describe('held batches', () => {
  test('are listed with reason, age, submissions, last answer and next try', async () => {
    const world = await heldWorld(2)
    await world.run('retry', { selection: { ids: [world.batches[1]!.batchId] } })
    await world.pass(100)
    const { batches, groups } = world.delivery.batches.list({}, 10)
    expect(groups).toMatchObject([{ state: 'held', reason: 'repeated', batches: 2, payloads: 4 }])
    expect(batches).toMatchObject([
      { batchId: world.batches[0]?.batchId, provider: 'default', role: 'live', payloads: 2, state: 'held' },
      {
        batchId: world.batches[1]?.batchId,
        held: { reason: 'repeated', requestId: 'r-9' },
        lastRequestId: 'r-9',
      },
    ])
    expect(batches[1]?.submissions).toBeGreaterThan(0)
    expect(batches[1]?.nextTryAt).toBeGreaterThan(world.clock.now())
    const detail = await world.delivery.batches.show(world.batches[1]!.batchId)
    const { payloadId } = payloadNamed('1-a')
    expect(detail?.contents[0]).toEqual({ payloadId, device: '1-a' })
    expect(detail?.answers.at(-1)?.text).toContain('409')
    expect(await world.delivery.batches.show('none')).toBeNull()
    expect(statesOf(world)).toEqual(['repeated', 'repeated'])
  })

  test('are retried with the same bytes under the same batchId, now', async () => {
    const world = await heldWorld(3)
    world.service.received.length = 0
    world.service.answer(acceptAll)
    expect(await world.run('retry')).toMatchObject({ batches: 3, payloads: 6, skipped: [] })
    await world.quiet()
    const ids = world.service.received.map(({ batchId }) => batchId)
    expect(ids.toSorted()).toEqual(world.batches.map(({ batchId }) => batchId).toSorted())
    expect(statesOf(world)).toEqual([])
    expect(world.spool.totals()).toMatchObject({ delivered: 6, heldBatches: 0 })
  })

  test('are split into single payloads', async () => {
    const world = await heldWorld(1)
    world.service.received.length = 0
    expect(await world.run('split')).toMatchObject({ batches: 1, newBatches: 2 })
    await world.quiet()
    expect(world.service.received.map(({ payloadIds }) => payloadIds)).toEqual([
      [payloadNamed('0-a').payloadId],
      [payloadNamed('0-b').payloadId],
    ])
  })

  test('that an answer accepted in part are dropped without what it accepted', async () => {
    const world = await createDeliveryWorld({
      script: ({ payloadIds }) => breakdown({ accepted: payloadIds.slice(0, 1), failed: [] }),
    })
    onTestFinished(() => world.end())
    await world.publish('a', 'b', 'c')
    await world.quiet()
    const [batch] = world.delivery.batches.list({}, 1).batches
    const request = {
      action: 'drop',
      selection: { ids: [batch!.batchId] },
      parts: null,
      dryRun: false,
    } as const
    await world.delivery.batches.run({ ...request, operator }, never)
    const letters = await collect(world.spool.deadLetters({ limit: 10 }))
    expect(letters.map(({ deadLetter }) => deadLetter.payloadId)).toEqual(
      ['b', 'c'].map((name) => payloadNamed(name).payloadId),
    )
    expect(world.delivery.counters()).toMatchObject({ delivered: 1, dead: 2 })
  })

  test('are discarded only with that word, counted and logged', async () => {
    const world = await heldWorld(1)
    expect(await world.run('discard')).toMatchObject({ batches: 1, payloads: 2 })
    expect(world.spool.totals()).toMatchObject({ dead: 2, deadLetters: 0, heldBatches: 0, openBytes: 0 })
    expect(world.delivery.counters()).toMatchObject({ dead: 2, discarded: 2 })
    expect(world.ofKind('payloads_discarded')).toMatchObject([{ payloads: 2 }])
  })

  test('are not dropped while the dead letters have no room', async () => {
    const world = await heldWorld(2, { spool: { deadLetterBytesMax: 1 } })
    const first = world.run('drop')
    await first.catch(() => undefined)
    expect(world.spool.deadLettersFull()).toBe(true)
    await expect(world.run('drop')).rejects.toMatchObject({ code: 'DAEMON_REFUSED' })
    expect(world.spool.totals().heldBatches).toBe(1)
  })
})

describe('a write that fails during an action', () => {
  test.each(['drop', 'reissue', 'mark-delivered'] as const)(
    'ends %s with the fault, and the batch is held as before',
    async (action) => {
      const world = await heldWorld(2)
      world.disk.failNextWrite({ reachesDisk: false })
      await expect(world.run(action)).rejects.toMatchObject({ code: 'SPOOL_WRITE_FAILED' })
      expect(world.ofKind('operator_action')).toMatchObject([{ action, batches: 0 }])
      await world.pass(5000)
      expect(world.spool.holdReason()).toBeNull()
      expect(statesOf(world)).toEqual(['repeated', 'repeated'])
      expect(await world.run(action)).toMatchObject({ batches: 2, skipped: [] })
    },
  )

  test('is not repeated where it reached the disk', async () => {
    const world = await heldWorld(2)
    world.disk.failNextWrite({ reachesDisk: true })
    await expect(world.run('drop')).rejects.toMatchObject({ code: 'SPOOL_WRITE_FAILED' })
    await world.pass(5000)
    expect(statesOf(world)).toEqual(['repeated'])
    expect(await world.run('drop')).toMatchObject({ batches: 1 })
    expect(world.spool.totals()).toMatchObject({ deadLetters: 4, heldBatches: 0 })
  })
})

describe('a batch that is in a submission', () => {
  test('is left alone, and shown as in flight', async () => {
    const world = await createDeliveryWorld({ script: () => 'hang' })
    onTestFinished(() => world.end())
    await world.publish('a', 'b', 'c')
    await world.quiet()
    const { batches } = world.delivery.batches.list({}, 10)
    expect(batches).toMatchObject([{ state: 'in flight', nextTryAt: null, submissions: 1 }])
    const ids = batches.map(({ batchId }) => batchId)
    for (const action of ['retry', 'reissue', 'drop', 'mark-delivered'] as const) {
      const request = { action, selection: { ids }, parts: null, dryRun: false, operator }
      const { skipped } = await world.delivery.batches.run(request, never)
      expect(skipped, action).toMatchObject([{ code: 'BATCH_BUSY' }])
    }
    expect(await world.delivery.batches.show(ids[0]!)).toMatchObject({ contents: [] })
  })

  test('is not sent while an action on it runs', async () => {
    const world = await heldWorld(1)
    world.service.received.length = 0
    const dropped = world.run('mark-delivered')
    world.delivery.probe()
    await dropped
    await world.quiet()
    expect(world.service.received).toEqual([])
  })
})
