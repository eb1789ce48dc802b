import { describe, expect, test } from 'vitest'
import {
  deliveryCounters,
  ingestCounters,
  lane,
  opsWorld,
  provider,
  spoolTotals,
  stages,
  startedOps,
} from '../support/ops-world.ts'
import { mappingStage } from '../support/mapping-stage.ts'
import { eventSamples, stateSamples } from '../support/event-samples.ts'

describe('the status', () => {
  const view = {
    ingest: ingestCounters({
      received: 100,
      lastMessageAt: 1_749_999_998_000,
      acked: 90,
      mapped: 70,
      ignored: 10,
      duplicates: 5,
      dead: 4,
      dropped: 1,
      held: 10,
      ignoredByReason: [{ source: 'trucks', reason: 'NO_POSITION', count: 10 }],
      deadByReason: [{ source: 'trucks', reason: 'NOT_JSON', count: 4 }],
    }),
    totals: spoolTotals({
      payloads: 80,
      duplicates: 6,
      delivered: 30,
      retried: 3,
      dead: 2,
      damaged: 1,
      openBytes: 470,
      deadLetters: 6,
    }),
    lanes: [
      lane(2, { role: { kind: 'backfill' }, pending: 40, oldestAt: 5 }),
      lane(1, {
        pending: 10,
        pendingBytes: 100,
        sealed: 10,
        sealedBytes: 50,
        appended: 50,
        settled: 30,
        open: 20,
      }),
      lane(3, { role: { kind: 'retry', schedule: 'default', step: 1 }, pending: 2 }),
    ],
    providers: [
      provider('default', {
        lastAcceptedAt: 1_749_999_997_000,
        ratePerS: 10,
        lastRequestId: 'r-1',
        clockOffsetMs: -5,
      }),
    ],
    delivery: deliveryCounters({ submissions: 9, dead: 2, outcomes: new Map([['answered', 9]]) }),
  }

  test('has every key of the contract, read from the stages', async () => {
    await using world = await startedOps()
    world.ops.attach(stages(view))
    expect(await world.json('/status')).toMatchObject({
      version: '1.2.3',
      ready: false,
      startedAt: '2025-06-15T15:06:40.000Z',
      lastMessageAt: '2025-06-15T15:06:38.000Z',
      lastAcceptedAt: '2025-06-15T15:06:37.000Z',
      providers: [
        {
          name: 'default',
          endpoint: 'available',
          since: '2025-06-15T15:06:40.000Z',
          lastRequestId: 'r-1',
          lastAcceptedAt: '2025-06-15T15:06:37.000Z',
          clockOffsetMs: -5,
        },
      ],
      totals: {
        since: 'start',
        messages: 100,
        acked: 90,
        payloads: 80,
        delivered: 30,
        retried: 3,
        unmappable: 4,
        dead: 2,
        duplicates: 6,
        ignored: 10,
        quarantined: 0,
        dropped: 1,
      },
      reasons: [
        { kind: 'ignored', source: 'trucks', reason: 'NO_POSITION', messages: 10 },
        { kind: 'unmappable', source: 'trucks', reason: 'NOT_JSON', messages: 4 },
      ],
      outcomes: [{ outcome: 'answered', submissions: 9 }],
      waiting: { heldMessages: 10, openMessages: 0 },
      spool: { bytes: 470, bytesMax: 1000, deadLetters: 6, hold: null },
    })
  })

  test('shows lanes in the order in which they drain, with the time until each is empty', async () => {
    await using world = opsWorld()
    world.ops.attach(stages(view))
    expect(
      world.ops.status().lanes.map(({ urgency, bytes, secondsToDrain }) => [urgency, bytes, secondsToDrain]),
    ).toEqual([
      ['live', 150, 2],
      ['retry', 0, 3],
      ['backfill', 0, 7],
    ])
  })

  const backfill = { kind: 'backfill' } as const
  const waits = [lane(1, { pending: 100 })]
  test.each([
    ['where nothing is delivered', [lane(1, { pending: 1 }), lane(2)], {}, [null, 0]],
    ['while the endpoint is unavailable', waits, { endpoint: 'unavailable', ratePerS: 10 }, [null]],
    ['while the endpoint is unauthorized', waits, { endpoint: 'unauthorized', ratePerS: 10 }, [null]],
    [
      'for held batches, which are not counted for others either',
      [
        lane(1, { pending: 10, sealed: 40, heldPayloads: 30 }),
        lane(2, { role: backfill, sealed: 50, heldPayloads: 50 }),
        lane(3, { role: backfill, pending: 10 }),
      ],
      { ratePerS: 10 },
      [2, null, 3],
    ],
  ] as const)('has no time to drain %s', async (_, lanes, more, expected) => {
    await using world = opsWorld()
    world.ops.attach(stages({ lanes, providers: [provider('default', more)] }))
    expect(world.ops.status().lanes.map(({ secondsToDrain }) => secondsToDrain)).toEqual(expected)
    expect(world.ops.status().lanes.map(({ held }) => held)).toEqual(
      lanes.map(({ heldPayloads }) => heldPayloads),
    )
  })

  test('accounts for every message and payload', async () => {
    await using world = opsWorld()
    // What the opening found missing was there before, and is gone.
    world.ops.emit({ ...eventSamples.spool_recovered, payloads: 14, damaged: 3 })
    world.ops.attach(stages(view))
    expect(world.ops.status().internals.conservation).toEqual({
      messages: { received: 100, carried: 0, split: 0, accounted: 100, difference: 0 },
      payloads: { recovered: 17, appended: 80, gone: 33, open: 62, difference: 2 },
      lanes: expect.arrayContaining([{ id: 1, appended: 50, settled: 30, open: 20, difference: 0 }]),
    })
  })

  test('accounts for messages that are quarantined or open, and for those open at the start', async () => {
    await using world = opsWorld()
    const ingest = ingestCounters({ received: 14, carried: 4, mapped: 9, quarantined: 5, openParts: 4 })
    const release = { released: 2, payloads: 2, dead: 1, keptAgain: 0, devices: 0 }
    world.ops.attach({ ...stages({ ingest }), mapping: mappingStage({ release }) })
    const { totals, waiting, internals } = world.ops.status()
    expect(internals.conservation.messages).toMatchObject({ accounted: 18, difference: 0 })
    expect(totals).toMatchObject({ quarantined: 5, released: 2, unmappable: 1 })
    expect(waiting.openMessages).toBe(4)
  })

  test('shows a dead letter without an event as a condition, and a lane that does not add up', async () => {
    await using world = opsWorld()
    const wrong = lane(9, { appended: 7, settled: 3, open: 3 })
    world.ops.attach(stages({ ...view, lanes: [wrong] }))
    expect(world.ops.status().conditions).toMatchObject([
      { code: 'CONSERVATION_BROKEN', key: 'lane 9' },
      { code: 'DEAD_LETTERS', severity: 'error', count: 6 },
    ])
  })

  test.each([
    ['Next try in 42 s.', { nextAttemptAt: 1_750_000_042_000 }],
    ['A try is running.', { nextAttemptAt: 1_750_000_000_000, inFlight: 1 }],
    ['Next try with the next payload.', { nextAttemptAt: 1_750_000_000_000 }],
  ])('says when delivery tries again, as it is now: %s', async (next, more) => {
    await using world = opsWorld()
    const states = [stateSamples.ENDPOINT_UNAVAILABLE]
    world.ops.attach(stages({ providers: [provider('north', more)], states }))
    expect(world.ops.status().conditions[0]?.what).toBe(
      `Cannot deliver for provider "north": the service answers 500. Data is kept. ${next}`,
    )
  })

  test('is an error with a reason while a stage throws, and the other paths answer', async () => {
    await using world = await startedOps()
    const { spool } = stages({})
    const lanes = () => {
      throw new Error('closing')
    }
    world.ops.attach({ spool: spool && { ...spool, lanes } })
    const answer = await world.ask('/status')
    expect(answer.status).toBe(500)
    expect(JSON.parse(answer.text)).toMatchObject({ why: 'closing' })
    expect((await world.ask('/healthz')).status).toBe(200)
  })
})
