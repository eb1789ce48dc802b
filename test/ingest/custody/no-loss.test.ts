// Ways in which a message could be acknowledged to the engine while its only copy is on the disk of the gateway.

import { describe, expect, test } from 'vitest'
import { createCustodyParts, type CustodyParts } from '../../support/custody-parts.ts'
import { collect } from '../../support/open-spool.ts'
import { acceptAll, failAll, type Script } from '../../support/scripted-service.ts'
import { exchangeOf, keptNamed, payloadNamed } from '../../support/spool-world.ts'

const acked = ({ engine }: CustodyParts) => engine.counts.acked
const messagesOn = ({ spool }: CustodyParts) =>
  spool.shelves().reduce((sum, { messages }) => sum + messages, 0)
const down: Script = () => ({ status: 503, body: { requestId: 'r', message: 'no' } })

/** Work on kept messages moves the only one of a shelf to another place. */
async function move(
  { spool }: CustodyParts,
  from: 'quarantine:default' | 'clock:default',
  to: Parameters<typeof exchangeOf>[0],
): Promise<void> {
  const [entry] = await collect(spool.keptMessages(from, null, { limit: 1 }))
  await spool.exchange(exchangeOf({ take: [entry!.id], ...to }))
}

describe('a message that moves', () => {
  test.each([
    ['is kept again on its shelf', 'quarantine:default', 'quarantine:default'],
    ['goes to the quarantine of another provider', 'quarantine:default', 'quarantine:other'],
    ['goes from the clock shelf to the quarantine', 'clock:default', 'quarantine:default'],
  ] as const)('and %s is not acknowledged before it has left', async (_, from, to) => {
    const world = await createCustodyParts()
    world.words(`keep ${from} a`)
    await world.passUntil(() => messagesOn(world) === 1)
    // It waits for that shelf.
    await world.pass(2000)
    await move(world, from, { keptMessages: [keptNamed('a', { shelf: to }).message] })
    await world.pass(5000)
    expect(messagesOn(world)).toBe(1)
    expect(acked(world)).toBe(0)
    await move(world, to as 'quarantine:default', { payloads: [payloadNamed('a')] })
    await world.passUntil(() => acked(world) === 1)
    expect(world.delivery.counters().delivered).toBe(1)
  })

  test('from the dead letters to a lane before its copy is stored is not acknowledged before it is delivered', async () => {
    const world = await createCustodyParts({ script: down })
    world.engine.refuse('dead')
    world.words('dead a')
    await world.passUntil(() => world.custody.view().storeFailures > 0)
    const [letter] = await collect(world.spool.deadLetters({ limit: 1 }))
    await world.spool.exchange(exchangeOf({ take: [letter!.id], payloads: [payloadNamed('a')] }))
    world.engine.refuse()
    await world.pass(40_000)
    expect(acked(world)).toBe(0)
    world.service.answer(acceptAll)
    await world.passUntil(() => acked(world) === 1)
    expect(world.delivery.counters().delivered).toBe(1)
  })
})

describe('a batch that is held because the service may have processed it', () => {
  test('is copied to the engine before its message is acknowledged, and stays here under its batchId', async () => {
    const script: Script = (_, index) => (index === 0 ? 'reset' : { status: 400, body: { message: 'no' } })
    const world = await createCustodyParts({ script })
    world.engine.refuse('dead')
    world.words('a')
    await world.passUntil(() => world.spool.batches().some(({ held }) => held !== null))
    await world.passUntil(() => world.custody.view().storeFailures > 0)
    expect(acked(world)).toBe(0)
    world.engine.refuse()
    await world.passUntil(() => acked(world) === 1)
    const [batch] = world.spool.batches()
    expect(batch?.held).not.toBeNull()
    expect(world.engine.dead.map((line) => JSON.parse(line) as object)).toMatchObject([
      {
        kind: 'payload',
        payload: { payloadId: world.service.received[0]!.payloadIds[0] },
        batch: { batchId: batch!.batchId },
      },
    ])
    expect(world.engine.parked).toEqual([])
  })
})

describe('a payload that fails again', () => {
  test('in another way, which begins at its first step, is not acknowledged before it is accepted', async () => {
    const world = await createCustodyParts({ script: failAll('Busy') })
    world.words('a')
    await world.passUntil(() => world.spool.totals().retried === 1)
    // A service that accepts others is in no outage.
    world.service.answer(acceptAll)
    world.words('b')
    await world.passUntil(() => world.delivery.counters().delivered === 1)
    world.service.answer(failAll('Validation'))
    await world.passUntil(() => world.spool.totals().retried === 2)
    await world.pass(2000)
    expect(acked(world)).toBe(0)
  })

  test('in an outage, which uses up no step, is not acknowledged before it is accepted', async () => {
    const world = await createCustodyParts({ script: failAll('Internal') })
    for (const [index, word] of ['a', 'b', 'c'].entries()) {
      world.words(word)
      await world.passUntil(() => world.spool.totals().retried === index + 1)
    }
    await world.passUntil(() => world.spool.totals().retried > 3)
    await world.pass(2000)
    expect(acked(world)).toBe(0)
    world.service.answer(acceptAll)
    await world.passUntil(() => acked(world) === 3)
    expect(world.delivery.counters().delivered).toBe(3)
  })
})

describe('a dead letter', () => {
  test.each([1, 2, 3, 4])('is copied after the store was lost during a copy (%i)', async (seed) => {
    const world = await createCustodyParts({ seed })
    const { custody } = world.source
    const { store } = custody!
    const gate = Promise.withResolvers<void>()
    let waiting = 0
    custody!.store = async (...call) => {
      waiting += 1
      if (waiting === 1) await gate.promise
      return store(...call)
    }
    world.words('dead a')
    await world.passUntil(() => waiting === 1)
    world.disk.failNextWrite({ reachesDisk: false })
    world.words('b')
    await world.passUntil(() => world.ofKind('store_reopened').length === 1, 20_000)
    gate.resolve()
    await world.passUntil(() => acked(world) === 2)
    world.words('dead c')
    await world.passUntil(() => acked(world) === 3)
    expect(world.engine.dead.filter((line) => line.includes('"detail":"c"')).length).toBe(1)
  })

  test('that is too large for the engine is copied without its bytes, and stops nothing', async () => {
    const world = await createCustodyParts({
      spool: { groupBytesMax: 4e6, deadLetterBytesMax: 64e6, bytesMax: 64e6 },
    })
    const { custody } = world.source
    const { store } = custody!
    custody!.store = async (queue, entries, signal) => {
      const stored = entries.filter(({ body }) => body.length < 1_000_000)
      await store(queue, stored, signal)
      if (stored.length < entries.length) throw new Error('maximum payload exceeded')
    }
    world.words('dead a', 'dead large 1200000', 'dead b', 'c')
    await world.passUntil(() => acked(world) === 4, 60_000)
    const copies = world.engine.dead.map(
      (line) => JSON.parse(line) as { envelope: { topic: string; bytes: string } },
    )
    const large = copies.filter(({ envelope }) => envelope.topic === 'large')
    expect(large.map(({ envelope }) => envelope.bytes)).toEqual([''])
    expect(world.custodyEvents).toContainEqual({ kind: 'custody_copies_cut', copies: 1 })
    const letters = await collect(world.spool.deadLetters({ limit: 10 }))
    expect(letters.map(({ deadLetter }) => deadLetter.envelope!.bytes.length)).toEqual([0, 1_200_000, 0])
  })

  test('is copied where the clock was set back since the last copy of an earlier run', async () => {
    const world = await createCustodyParts({
      deps: { copied: { read: async () => 'f'.repeat(32), write: async () => undefined } },
    })
    world.words('dead a')
    await world.passUntil(() => acked(world) === 1)
    expect(world.engine.dead.length).toBe(1)
  })
})

test('a record that could not close, because the process stood still, is not taken for closed', async () => {
  const world = await createCustodyParts()
  world.records.openParts = 1
  world.records.openMsMax = 60_000
  world.words('drop')
  await world.pass(1000)
  const { monotonic } = world.clock
  world.clock.monotonic = () => monotonic() + 80_000
  await world.pass(2000)
  expect(acked(world)).toBe(0)
  await world.passUntil(() => acked(world) === 1, 90_000)
})

describe('parking', () => {
  test('that failed is no condition any more when nothing is left to park', async () => {
    const world = await createCustodyParts({ script: failAll('Validation') })
    const codes = () => world.custody.states().map(({ code }) => code)
    world.engine.refuse('parked')
    world.words('a')
    await world.passUntil(() => codes().includes('CUSTODY_STORE_FAILED'))
    world.service.answer(acceptAll)
    await world.passUntil(() => acked(world) === 1)
    await world.pass(1000)
    expect(codes()).toEqual([])
  })

  test('is in time where the wall clock was set back by an hour', async () => {
    const world = await createCustodyParts({ script: failAll('Validation') })
    world.words('a', 'b', 'keep quarantine:default c')
    await world.passUntil(() => world.spool.totals().retried === 2)
    world.clock.stepWall(-3_600_000)
    await world.passUntil(() => acked(world) === 3, 120_000)
    expect(world.engine.parked.length).toBe(3)
  })

  test('of refused batches is in time, too', async () => {
    const world = await createCustodyParts({
      script: () => ({ status: 400, body: { requestId: 'r', message: 'no' } }),
      provider: { batch: { payloadsMax: 1, bodyBytesMax: 64 * 1024, lingerMs: 1000 } },
    })
    world.words('a', 'b', 'c')
    await world.passUntil(() => world.spool.totals().heldBatches === 3)
    world.clock.stepWall(-3_600_000)
    await world.passUntil(() => acked(world) === 3, 180_000)
    expect(world.engine.parked.length).toBe(3)
  })

  test('again after a lost confirm is no second effect: the entries have one id', async () => {
    const world = await createCustodyParts({ script: failAll('Validation') })
    let confirms = 0
    world.engine.onConfirm = (queue) => {
      if (queue !== 'parked') return
      confirms += 1
      if (confirms <= 3) throw new Error('the connection is lost')
    }
    world.words('a', 'b')
    await world.passUntil(() => acked(world) === 2)
    expect(world.engine.parked.length).toBe(8)
    world.service.answer(acceptAll)
    await world.passUntil(() => world.engine.parked.length === 0)
    expect(world.delivery.counters().delivered).toBe(2)
    expect(world.custody.view()).toMatchObject({ takenBack: 2, parkedDuplicates: 6 })
  })
})
