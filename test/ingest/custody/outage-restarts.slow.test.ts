// The engine is stopped and started while the ingestion API accepts nothing, for longer than the dedup window. It delivers
// again what is not acknowledged; all of that is here.

import { describe, expect, test } from 'vitest'
import { createCustodyParts, type CustodyParts } from '../../support/custody-parts.ts'
import { acceptAll, type Received, type Script } from '../../support/scripted-service.ts'
import { payloadNamed } from '../../support/spool-world.ts'

const down: Script = () => ({ status: 503, body: { requestId: 'r', message: 'no' } })
const hourMs = 3_600_000
const names = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => `word-${from + index}`)
const idsOf = (words: readonly string[]) => words.map((word) => payloadNamed(word).payloadId as string)

async function openWorld() {
  const accepted: string[] = []
  const world = await createCustodyParts({
    script: down,
    provider: { maxInFlight: 1 },
    // As every minute in a gateway.
    spool: { forgetMs: 60_000 },
  })
  const accept = (request: Received) => {
    accepted.push(...request.payloadIds)
    return acceptAll(request)
  }
  return { world, accepted, accept }
}

/** In the order of the lanes: of two lanes the fresh one is delivered first, and refused batches wait each for itself. */
function storedOrder({ service, ofKind }: CustodyParts): string[] {
  const laneOf = new Map(ofKind('batch_sealed').map(({ batchId, lane }) => [batchId as string, lane]))
  const sent = service.received.toSorted(
    (one, other) => laneOf.get(one.batchId)! - laneOf.get(other.batchId)!,
  )
  return [...new Set(sent.flatMap(({ payloadIds }) => payloadIds))]
}

async function restart({ engine, pass }: CustodyParts): Promise<void> {
  engine.down()
  await pass(60_000)
  engine.up()
}

describe('an outage of the ingestion API', { timeout: 240_000 }, () => {
  test('of six hours with five restarts of the engine loses nothing, stores nothing twice, and keeps the order', async () => {
    const { world, accepted, accept } = await openWorld()
    world.words(...names(0, 60))
    await world.passUntil(() => world.custody.view().holds)
    expect(world.spool.totals().payloads).toBe(60)
    for (let hour = 1; hour <= 5; hour += 1) {
      await restart(world)
      world.words(...names(50 + hour * 10, 60 + hour * 10))
      await world.pass(hourMs)
    }
    await world.pass(hourMs)
    expect(world.engine.counts.acked).toBe(0)
    world.service.answer(accept)
    await world.passUntil(() => world.engine.counts.acked === 110)
    expect(world.spool.totals()).toMatchObject({ payloads: 110, duplicates: 60 })
    expect(accepted.toSorted()).toEqual(idsOf(names(0, 110)).toSorted())
    expect(storedOrder(world)).toEqual(idsOf(names(0, 110)))
  })

  test('whose end comes while the engine is stopped, is not repeated when the engine returns an hour later', async () => {
    const { world, accepted, accept } = await openWorld()
    world.words(...names(0, 60))
    await world.passUntil(() => world.custody.view().holds)
    await world.pass(hourMs)
    world.engine.down()
    world.service.answer(accept)
    await world.passUntil(() => accepted.length === 60)
    await world.pass(hourMs)
    world.engine.up()
    await world.passUntil(() => world.engine.counts.acked === 60)
    expect(world.engine.counts.redelivered).toBe(60)
    await world.pass(60_000)
    expect(accepted.toSorted()).toEqual(idsOf(names(0, 60)).toSorted())
  })

  test('in which the engine forgets its messages loses none of those that were taken', async () => {
    const { world, accepted, accept } = await openWorld()
    world.words(...names(0, 60))
    await world.passUntil(() => world.custody.view().holds)
    world.engine.purge()
    await world.pass(hourMs)
    await restart(world)
    world.service.answer(accept)
    await world.passUntil(() => accepted.length === 60)
    expect(accepted.toSorted()).toEqual(idsOf(names(0, 60)).toSorted())
    expect(world.spool.lanes().reduce((sum, { open }) => sum + open, 0)).toBe(0)
  })

  test('in which the store of the spool was opened again stores nothing twice', async () => {
    const { world, accepted, accept } = await openWorld()
    world.words(...names(0, 60))
    await world.passUntil(() => world.custody.view().holds)
    await world.pass(hourMs)
    world.disk.failNextWrite({ reachesDisk: false })
    await world.spool
      .exchange({
        take: [],
        payloads: [],
        deadLetters: [],
        stateChanges: [{ key: 'x', value: Buffer.from('y') }],
      })
      .catch(() => undefined)
    await world.passUntil(() => world.ofKind('store_reopened').length === 1)
    await world.pass(hourMs)
    world.service.answer(accept)
    await world.passUntil(() => world.engine.counts.acked === 60)
    expect(accepted.toSorted()).toEqual(idsOf(names(0, 60)).toSorted())
  })

  test('is over: what was acknowledged leaves the dedup window', async () => {
    const { world, accept } = await openWorld()
    world.words(...names(0, 60))
    await world.passUntil(() => world.custody.view().holds)
    await world.pass(hourMs)
    expect(world.spool.totals().windowIds).toBe(60)
    world.service.answer(accept)
    await world.passUntil(() => world.engine.counts.acked === 60)
    await world.passUntil(() => world.spool.totals().windowIds === 0, hourMs)
  })
})
