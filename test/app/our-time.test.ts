// What our time is, by the service, the kernel and the devices. In the whole gateway: clock-corrections.test.ts.

import { describe, expect, test } from 'vitest'
import { createOurTime } from '../../src/app/our-time.ts'
import { clockErrorOf, correctedEnvelope } from '../../src/domain/arrival.ts'
import type { GatewayEvent } from '../../src/domain/event.ts'
import { envelopeOf, type Envelope } from '../../src/domain/message.ts'
import { createFakeClock, fakeStartMs } from '../support/fake-clock.ts'
import { messageOf } from '../support/mapping-world.ts'
import { testBootId } from '../support/our-time.ts'

const hourMs = 3_600_000

async function world({ trustLocal = false }: { trustLocal?: boolean } = {}) {
  const clock = createFakeClock()
  const events: GatewayEvent[] = []
  const says = { kernel: false, service: null as number | null, sleptMs: 0, asked: 0 }
  const kernel = {
    bootId: testBootId,
    sleptMs: () => says.sleptMs,
    isSynchronised: async () => {
      says.asked += 1
      return says.kernel
    },
  }
  const time = createOurTime({ clock, emit: (event) => void events.push(event), kernel }, { trustLocal })
  time.follow({ clockOffsetMs: () => says.service })
  let corrections = 0
  time.onCorrection(() => (corrections += 1))
  time.start()
  await clock.advance(0)
  return {
    clock,
    says,
    time,
    events,
    kinds: () => events.map(({ kind }) => kind),
    corrections: () => corrections,
    /** What is kept of a message that arrives now. */
    arrives(): Envelope {
      const message = messageOf({}, { topic: 'telemetry/v1/truck-1' })
      time.stamp(message, clock.now())
      return envelopeOf(message, null)
    },
    /** The clock is set. The service learns of it with its next answer. */
    set(byMs: number) {
      clock.stepWall(byMs)
      says.service = null
    },
  }
}

describe('our time', () => {
  test('follows the service where the clock of this machine is wrong', async () => {
    const { time, says, clock, arrives } = await world()
    says.service = hourMs
    await clock.advance(1100)
    expect(time.now()).toBe(clock.now() + hourMs)
    expect(time.offsetMs()).toBe(0)
    expect(time.wallOffsetMs()).toBe(hourMs)
    expect(arrives()).toMatchObject({ arrivedAt: clock.now() + hourMs, arrival: { offsetMs: 0 } })
  })

  test('is unknown from the first message after a step on, before any timer runs', async () => {
    const { time, says, clock, set, arrives, kinds } = await world()
    says.service = 0
    await clock.advance(1100)
    expect(arrives().arrival?.offsetMs).toBe(0)
    set(-hourMs)
    expect(arrives().arrival?.offsetMs).toBeNull()
    expect(time.view().by).toBeNull()
    expect(kinds()).toContain('clock_stepped')
  })

  test('is asked for by messages where the timers are late', async () => {
    const { says, clock, time, arrives } = await world()
    says.service = 0
    time.stop()
    await clock.advance(5000)
    expect(arrives().arrival?.offsetMs).toBe(0)
  })

  test('of the kernel is void after a step until the kernel says so again', async () => {
    const { says, clock, time, set } = await world()
    says.kernel = true
    await clock.advance(20_000)
    const { asked } = says
    says.kernel = false
    set(hourMs)
    expect(time.offsetMs()).toBeNull()
    await clock.advance(0)
    expect(says.asked).toBe(asked + 1)
    expect(time.offsetMs()).toBeNull()
    says.kernel = true
    await clock.advance(20_000)
    expect(time.view().by).toBe('kernel')
  })

  test('of the kernel is not known by an answer to a question from before the step', async () => {
    const answers: ((isSynchronised: boolean) => void)[] = []
    const clock = createFakeClock()
    const kernel = {
      bootId: testBootId,
      sleptMs: () => 0,
      isSynchronised: () => new Promise<boolean>((resolve) => void answers.push(resolve)),
    }
    const time = createOurTime({ clock, emit: () => undefined, kernel }, { trustLocal: false })
    time.start()
    clock.stepWall(hourMs)
    expect(time.offsetMs()).toBeNull()
    expect(answers).toHaveLength(2)
    answers[0]?.(true)
    await clock.advance(0)
    expect(time.offsetMs()).toBeNull()
    answers[1]?.(true)
    await clock.advance(0)
    expect(time.offsetMs()).toBe(0)
  })

  test('does not step when the machine slept', async () => {
    const { says, clock, time, kinds, arrives, set } = await world()
    says.kernel = true
    await clock.advance(20_000)
    const before = arrives()
    set(8 * hourMs)
    says.sleptMs += 8 * hourMs
    expect(time.view().by).toBe('kernel')
    expect(kinds()).not.toContain('clock_stepped')
    expect(correctedEnvelope(before, time)).toEqual(before)
    expect(correctedEnvelope(arrives(), time).arrivedAt).toBe(clock.now())
  })

  test('is the later one for device times where service and kernel differ, and nothing is sorted by age', async () => {
    for (const [offsetMs, laterMs] of [
      [hourMs, hourMs],
      [-hourMs, 0],
    ] as const) {
      const { says, clock, time, events } = await world()
      says.kernel = true
      says.service = offsetMs
      await clock.advance(20_000)
      expect(time.offsetMs()).toBe(laterMs)
      expect(time.now()).toBe(clock.now())
      expect(time.wallOffsetMs()).toBeNull()
      expect(time.view().isDisputed).toBe(true)
      expect(events.at(-1)).toMatchObject({ kind: 'clock_known', isDisputed: true })
    }
  })

  test('is that of the clock where devices refute a service that is behind, until it says another time', async () => {
    const { time, says, clock } = await world()
    says.service = -hourMs
    await clock.advance(1100)
    time.comparedToDevices(-2 * hourMs)
    expect(time.view()).toMatchObject({ by: 'service', isDisputed: false })
    time.comparedToDevices(-hourMs)
    expect(time.view()).toMatchObject({ by: 'devices', offsetMs: 0, isDisputed: true })
    expect(time.now()).toBe(clock.now())
    says.service = -3 * hourMs
    await clock.advance(1100)
    expect(time.view()).toMatchObject({ by: 'service', offsetMs: -3 * hourMs, isDisputed: false })
  })

  test('is that of a service that is ahead, also where devices bring a backlog of just as long', async () => {
    const { time, says, clock } = await world()
    says.service = hourMs
    await clock.advance(1100)
    time.comparedToDevices(hourMs)
    expect(time.view()).toMatchObject({ by: 'service', isDisputed: false })
  })

  test('of devices is void after a step of the clock', async () => {
    const { time, says, clock, set } = await world()
    says.service = -hourMs
    await clock.advance(1100)
    time.comparedToDevices(-hourMs)
    set(-hourMs)
    await clock.advance(1100)
    says.service = -hourMs
    await clock.advance(1100)
    expect(time.view()).toMatchObject({ by: 'service', isDisputed: false })
  })

  test('does not change back and forth where the service is about a minute off', async () => {
    const { says, clock, events } = await world({ trustLocal: true })
    for (const offsetMs of [59_000, 61_000, 59_000, 61_000, 44_000]) {
      says.service = offsetMs
      await clock.advance(1100)
    }
    const disputes = events.flatMap((event) => (event.kind === 'clock_known' ? [event.isDisputed] : []))
    expect(disputes).toEqual([false, true, false])
  })

  test('that is unknown for two minutes raises a condition once, and clears it when it is known', async () => {
    const { says, clock, kinds } = await world()
    await clock.advance(119_000)
    expect(kinds()).toEqual([])
    await clock.advance(3_600_000)
    expect(kinds()).toEqual(['clock_unknown'])
    says.service = 0
    await clock.advance(1100)
    expect(kinds()).toEqual(['clock_unknown', 'clock_known'])
  })
})

describe('the arrival of a kept message', () => {
  test('is corrected by what is learned later in the same boot, whatever the clock showed', async () => {
    const { says, clock, time, arrives, set } = await world()
    set(-hourMs)
    const first = arrives()
    await clock.advance(5000)
    set(2 * hourMs)
    const second = arrives()
    await clock.advance(5000)
    says.service = -hourMs
    await clock.advance(1100)
    expect(first.arrivedAt).toBe(fakeStartMs - hourMs)
    expect(correctedEnvelope(first, time)).toMatchObject({ arrivedAt: fakeStartMs, arrival: { offsetMs: 0 } })
    expect(correctedEnvelope(second, time)).toMatchObject({ arrivedAt: fakeStartMs + 5000 })
  })

  test('stays as it is while our time is unknown, and for another boot or an old record', async () => {
    const { says, clock, time, arrives } = await world()
    const kept = arrives()
    expect(correctedEnvelope(kept, time)).toBe(kept)
    says.service = hourMs
    await clock.advance(1100)
    expect(correctedEnvelope(kept, time).arrivedAt).toBe(kept.arrivedAt + hourMs)
    const { arrival, ...old } = kept
    const foreign = { ...old, arrival: { ...arrival!, bootId: 'another' } }
    for (const other of [old, foreign]) {
      expect(correctedEnvelope(other, time)).toBe(other)
      expect(clockErrorOf(other, time)).toBe(0)
    }
  })

  test.each([-hourMs, hourMs])(
    'tells by how much the clock that judged it was off (%d ms)',
    async (offMs) => {
      const { clock, time, arrives, corrections } = await world({ trustLocal: true })
      const right = arrives()
      clock.stepWall(offMs)
      const misjudged = arrives()
      const before = corrections()
      clock.stepWall(-offMs)
      await clock.advance(1100)
      expect(corrections()).toBe(before + 1)
      expect([right, misjudged].map((kept) => clockErrorOf(kept, time))).toEqual([0, -offMs])
      expect(clockErrorOf(correctedEnvelope(misjudged, time), time)).toBe(0)
    },
  )

  test('is corrected after a small step too, but not with each answer over a slow link', async () => {
    const { clock, corrections, set } = await world({ trustLocal: true })
    const before = corrections()
    set(6000)
    await clock.advance(1100)
    expect(corrections()).toBe(before + 1)
    set(4000)
    await clock.advance(1100)
    expect(corrections()).toBe(before + 1)

    const remote = await world()
    const learned = [0, 20_000, -20_000, 100_000]
    const counts: number[] = []
    for (const offsetMs of learned) {
      remote.says.service = offsetMs
      await remote.clock.advance(1100)
      counts.push(remote.corrections())
    }
    expect(counts).toEqual([1, 1, 1, 2])
  })
})
