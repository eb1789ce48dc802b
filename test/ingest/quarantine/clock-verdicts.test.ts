import { describe, expect, test } from 'vitest'
import { createClockVerdicts, type ClockVerdicts } from '../../../src/ingest/quarantine/clock-verdicts.ts'
import { systemClock } from '../../../src/std/clock.ts'
import { openKeptWorld, topicOf, type KeptOptions, type KeptWorld } from '../../support/kept-world.ts'
import { truckSource } from '../../support/mapping-world.ts'
import { ourTimeOf } from '../../support/our-time.ts'
import { collect, keptIn } from '../../support/open-spool.ts'

const clockShelf = 'clock:default'
const hourMs = 3_600_000
const fleet = ['truck-1', 'truck-2', 'truck-3']

type World = KeptWorld & { verdicts: ClockVerdicts }

/** The clock counts as right and is an hour behind, until the test sets the offset. */
async function open(options: KeptOptions & { bootId?: string } = {}): Promise<World> {
  const kept = await openKeptWorld({ listed: fleet, ...options })
  const { world, mapping, events } = kept
  const verdicts = createClockVerdicts({
    spool: world.spool,
    clock: systemClock,
    ourTime:
      options.bootId === undefined ? kept.ourTime : ourTimeOf(() => hourMs, systemClock, options.bootId),
    emit: (event) => void events.push(event),
    mapping,
  })
  return {
    ...kept,
    verdicts,
    async leave() {
      await verdicts.stop()
      await kept.leave()
    },
  }
}

/** A position of now, as a right clock sees it: an hour ahead of ours. */
const aheadOf = (ms: number) => (n: number) => ({
  ts: Math.floor(Date.now() / 1000) * 1000 + ms + n,
  lat: 52.5 + n / 10_000,
  lon: 13.4,
})
const present = aheadOf(hourMs)
const nextDay = aheadOf(25 * hourMs)

describe('messages that seemed to be in the future because our clock was behind', () => {
  test('are sent by themselves when the clock is known, in the order of arrival of each device', async () => {
    const kept = await open()
    const sent: [string, number][] = []
    for (let n = 0; n < 300; n += 1) {
      const device = fleet[n % 3] ?? ''
      // Out of order in their own time, so that only the arrival gives the order.
      const message = present((n * 7) % 300)
      sent.push([device, message.ts])
      void kept.publish(topicOf(device), message)
    }
    await kept.publish(topicOf('truck-1'), present(400))
    expect(await keptIn(kept.world.spool, clockShelf)).toHaveLength(301)
    kept.verdicts.correct()
    await kept.verdicts.idle()
    expect(await keptIn(kept.world.spool, clockShelf)).toHaveLength(301)

    kept.setOffset(hourMs)
    kept.verdicts.correct()
    await kept.verdicts.idle()
    expect(await keptIn(kept.world.spool, clockShelf)).toEqual([])
    const received = await kept.sent()
    for (const name of fleet) {
      const of = (all: readonly (readonly [string, number])[]) =>
        all.filter(([device]) => device === name).map(([, time]) => time)
      expect(of(received.map(({ device, time }) => [device, time] as const)).slice(0, 100)).toEqual(of(sent))
    }
    expect(received).toHaveLength(301)
    expect(kept.verdicts.counters()).toEqual({ released: 301, payloads: 301, dead: 0, keptAgain: 0 })
    expect(kept.events.filter(({ kind }) => kind === 'clock_verdicts_corrected')).toEqual([
      { kind: 'clock_verdicts_corrected', messages: 301, payloads: 301, dead: 0, keptAgain: 0 },
    ])
  })

  test('stay where they are ahead of the right time too, and are not mapped again and again', async () => {
    const kept = await open()
    await kept.publish(topicOf('truck-1'), nextDay(1))
    await kept.publish(topicOf('truck-1'), present(2))
    kept.setOffset(hourMs)
    for (let count = 0; count < 3; count += 1) {
      kept.verdicts.correct()
      await kept.verdicts.idle()
    }
    expect(kept.verdicts.counters()).toMatchObject({ released: 1, payloads: 1, keptAgain: 1 })
    const [left] = await collect(kept.world.spool.keptMessages(clockShelf, 'truck-1', { limit: 10 }))
    expect(left?.message).toMatchObject({ reason: 'FUTURE', envelope: { arrival: { offsetMs: 0 } } })
    expect(Math.abs((left?.message.envelope.arrivedAt ?? 0) - Date.now() - hourMs)).toBeLessThan(60_000)
  })

  test('stay where they arrived in another boot: nobody knows when that was', async () => {
    const kept = await open({ bootId: 'another' })
    await kept.publish(topicOf('truck-1'), present(1))
    kept.verdicts.correct()
    await kept.verdicts.idle()
    expect(await keptIn(kept.world.spool, clockShelf)).toHaveLength(1)
  })

  test('are found by the next process of the same boot', async () => {
    const kept = await open()
    for (let n = 0; n < 5; n += 1) await kept.publish(topicOf('truck-1'), present(n))
    const { path } = kept.world
    await kept.leave()
    const next = await open({ path })
    next.setOffset(hourMs)
    next.verdicts.correct()
    await next.verdicts.idle()
    expect(await keptIn(next.world.spool, clockShelf)).toEqual([])
    expect(await next.sent()).toHaveLength(5)
  })
})

describe('messages that were kept for another reason while our clock was behind', () => {
  test('are judged by the corrected arrival when their device is listed', async () => {
    const kept = await openKeptWorld({ listed: fleet })
    await kept.publish(topicOf('new-1'), present(1))
    await kept.publish(topicOf('new-1'), nextDay(2))
    kept.setOffset(hourMs)
    await kept.change({ listed: ['new-1'] })
    await kept.release.idle()
    expect(await kept.sent()).toHaveLength(1)
    expect(await kept.keptReasons(clockShelf, 'new-1')).toEqual(['FUTURE'])
  })

  test('are judged by it when a person maps dead letters again', async () => {
    const wrong = truckSource({ time: { path: 'missing', format: 'ms' } })
    const kept = await openKeptWorld({ sources: [wrong], listed: fleet })
    for (const message of [present(1), nextDay(2)]) await kept.publish(topicOf('truck-1'), message)
    kept.setOffset(hourMs)
    await kept.change({ sources: [truckSource()] })
    expect(await kept.remap()).toMatchObject({ remapped: 2, payloads: 1, kept: 1 })
  })

  test('get the corrected time of arrival where the message has none', async () => {
    const untimed = truckSource({ time: { path: 'ts', format: 'ms', missing: 'arrival' } })
    const kept = await openKeptWorld({ sources: [untimed], listed: fleet })
    await kept.publish(topicOf('new-1'), { lat: 52.5, lon: 13.4 })
    const before = Date.now()
    kept.setOffset(hourMs)
    await kept.change({ listed: ['new-1'] })
    await kept.release.idle()
    const [sent] = await kept.sent()
    expect(Math.abs((sent?.time ?? 0) - before - hourMs)).toBeLessThan(10_000)
  })
})
