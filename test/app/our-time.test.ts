// What our time is, by the service, the kernel and the devices. In the whole gateway: clock-corrections.test.ts.

import { expect, test } from 'vitest'
import { createOurTime } from '../../src/app/our-time.ts'
import { clockErrorOf, correctedEnvelope } from '../../src/domain/arrival.ts'
import type { GatewayEvent } from '../../src/domain/event.ts'
import { envelopeOf, type Envelope } from '../../src/domain/message.ts'
import { createFakeClock, fakeStartMs } from '../support/fake-clock.ts'
import { messageOf } from '../support/mapping-world.ts'
import { testBootId } from '../support/our-time.ts'
import { stepCases } from '../support/step-cases.ts'

const hourMs = 3_600_000

type World = Awaited<ReturnType<typeof world>>

async function world(given?: { trustLocal: boolean }) {
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
  const options = given ?? { trustLocal: false }
  const time = createOurTime({ clock, emit: (event) => void events.push(event), kernel }, options)
  time.follow({ clockOffsetMs: () => says.service })
  const counts = { corrections: 0, asked: 0 }
  time.onCorrection(() => (counts.corrections += 1))
  time.start()
  await clock.advance(0)
  return { clock, says, time, events, counts, kept: [] as Envelope[] }
}

/** What is kept of a message that arrives now. */
function arrival({ time, clock }: World): Envelope {
  const message = messageOf({}, { topic: 'telemetry/v1/truck-1' })
  time.stamp(message, clock.now())
  return envelopeOf(message, null)
}

stepCases(import.meta.filename, world, {
  kernelSays: ({ says }: World, kernel: boolean) => Object.assign(says, { kernel }),
  /** By how much the clock of the service differs, as its next answer shows. */
  serviceSays: async ({ says, clock }: World, service: number) => {
    says.service = service
    await clock.advance(1100)
  },
  serviceWillSay: ({ says }: World, service: number) => Object.assign(says, { service }),
  devicesSay: ({ time }: World, ms: number) => time.comparedToDevices(ms),
  /** The clock is set. The service learns of it with its next answer. */
  set: ({ clock, says }: World, byMs: number) => {
    clock.stepWall(byMs)
    says.service = null
  },
  step: ({ clock }: World, byMs: number) => clock.stepWall(byMs),
  sleep: ({ says }: World, ms: number) => void (says.sleptMs += ms),
  stopTimers: ({ time }: World) => time.stop(),
  pass: ({ clock }: World, ms: number) => clock.advance(ms),
  arrive: (one: World) => one.kept.push(arrival(one)),
  /** What is known of our time: the offset, by whom, and whether that is disputed. */
  view: ({ time }: World, expected: object) => expect(time.view()).toMatchObject(expected),
  offset: ({ time }: World, ms: number | null) => expect(time.offsetMs()).toBe(ms),
  wallOffset: ({ time }: World, ms: number | null) => expect(time.wallOffsetMs()).toBe(ms),
  aheadOfClock: ({ time, clock }: World, ms: number) => expect(time.now() - clock.now()).toBe(ms),
  /** The last message that arrived: its time beside that of the clock, and the offset that it has. */
  arrived: ({ kept, clock }: World, [aheadMs, offsetMs]: [number, number | null]) => {
    const { arrivedAt, arrival } = kept.at(-1)!
    expect([arrivedAt - clock.now(), arrival?.offsetMs]).toEqual([aheadMs, offsetMs])
  },
  /** When each arrived, after the start, as it is known now. */
  corrected: ({ kept, time }: World, afterMs: number[]) =>
    expect(kept.map((one) => correctedEnvelope(one, time).arrivedAt - fakeStartMs)).toEqual(afterMs),
  /** By how much the clock was off that judged each of them, and nothing once they are corrected. */
  errors: ({ kept, time }: World, expected: number[]) => {
    expect(kept.map((one) => clockErrorOf(one, time))).toEqual(expected)
    for (const one of kept) expect(clockErrorOf(correctedEnvelope(one, time), time)).toBe(0)
  },
  noteCorrections: ({ counts }: World) => void (counts.asked = counts.corrections),
  /** More than when they were last looked at. */
  corrections: ({ counts }: World, more: number) => {
    expect(counts.corrections).toBe(counts.asked + more)
    counts.asked = counts.corrections
  },
  states: ({ time }: World, expected: string[]) =>
    expect([...time.states()].map(({ code }) => code)).toEqual(expected),
  events: ({ events }: World, expected: object[]) => expect(events).toMatchObject(expected),
  disputes: ({ events }: World, expected: boolean[]) =>
    expect(events.flatMap((one) => (one.kind === 'clock_known' ? [one.isDisputed] : []))).toEqual(expected),
  stepped: ({ events }: World, isKnown: boolean) =>
    expect(events.some(({ kind }) => kind === 'clock_stepped')).toBe(isKnown),
})

test('our time steps where the clock is set or corrected, and not where the machine slept', async () => {
  const { says, clock, time } = await world()
  const steps: number[] = []
  time.onStep((byMs) => steps.push(byMs))
  clock.stepWall(hourMs)
  says.sleptMs += hourMs
  time.now()
  expect(steps).toEqual([])
  clock.stepWall(hourMs)
  time.now()
  expect(steps).toEqual([hourMs])
  says.service = -2 * hourMs
  await clock.advance(1100)
  expect(steps).toEqual([hourMs, -2 * hourMs])
})

test('our time of the kernel is void after a step, and it is asked at once', async () => {
  const { says, clock, time } = await world()
  says.kernel = true
  await clock.advance(20_000)
  const { asked } = says
  says.kernel = false
  clock.stepWall(hourMs)
  expect(time.offsetMs()).toBeNull()
  await clock.advance(0)
  expect(says.asked).toBe(asked + 1)
  expect(time.offsetMs()).toBeNull()
  says.kernel = true
  await clock.advance(20_000)
  expect(time.view().by).toBe('kernel')
})

test('our time of the kernel is not known by an answer to a question from before the step', async () => {
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

test('the arrival of a kept message stays as it is while our time is unknown, and for another boot or an old record', async () => {
  const one = await world()
  const { says, clock, time } = one
  const kept = arrival(one)
  expect(correctedEnvelope(kept, time)).toBe(kept)
  says.service = hourMs
  await clock.advance(1100)
  expect(correctedEnvelope(kept, time).arrivedAt).toBe(kept.arrivedAt + hourMs)
  const { arrival: known, ...old } = kept
  const foreign = { ...old, arrival: { ...known!, bootId: 'another' } }
  for (const other of [old, foreign]) {
    expect(correctedEnvelope(other, time)).toBe(other)
    expect(clockErrorOf(other, time)).toBe(0)
  }
})
