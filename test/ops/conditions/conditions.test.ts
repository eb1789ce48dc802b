import { expect, test } from 'vitest'
import { heldActs } from '../../../src/ops/conditions/delivery-conditions.ts'
import type { EventName, GatewayEvent } from '../../../src/domain/event.ts'
import type { ConditionCode } from '../../../src/ops/conditions/condition-catalogue.ts'
import { createConditions } from '../../../src/ops/conditions/conditions.ts'
import { DeadLetterCauses } from '../../../src/ops/conditions/dead-letter-conditions.ts'
import type { State, StateCode } from '../../../src/domain/condition-state.ts'
import { presentOf } from '../../../src/ops/conditions/causes.ts'
import { eventSamples, stateSamples } from '../../support/event-samples.ts'
import { createRandom } from '../../support/random.ts'
import { handClock } from '../../support/ops-world.ts'
import { stepCases } from '../../support/step-cases.ts'

/** The sample of a name, or the sample with other fields. */
type Written<Name extends string = EventName> = Name | Partial<Record<Name, object>>
type World = ReturnType<typeof world>

function world() {
  const clock = handClock()
  const conditions = createConditions({ clock })
  const deadLetters = new DeadLetterCauses()
  const codes = () => conditions.open().map(({ code, key }) => (key === null ? code : `${code} ${key}`))
  return { clock, conditions, deadLetters, codes, open: () => conditions.open() }
}

function eventOf(written: Written): GatewayEvent {
  if (typeof written === 'string') return eventSamples[written]
  const [[name, fields] = []] = Object.entries(written) as [EventName, object][]
  return { ...eventSamples[name!], ...fields }
}

function stateOf(written: Written<StateCode>): State {
  if (typeof written === 'string') return stateSamples[written]
  const [[code, fields] = []] = Object.entries(written) as [StateCode, object][]
  return { ...stateSamples[code!], ...fields }
}

stepCases(import.meta.filename, world, {
  apply: ({ conditions, deadLetters }: World, events: Written | Written[]) => {
    for (const event of [events].flat().map(eventOf)) {
      conditions.apply(event)
      deadLetters.note(event)
    }
  },
  /** All states that hold now. */
  holds: ({ conditions }: World, states: Written<StateCode> | Written<StateCode>[]) =>
    conditions.look([states].flat().map((one) => presentOf(stateOf(one)))),
  shows: ({ conditions, open }: World, [state, texts]: [Written<StateCode>, object]) => {
    conditions.look([presentOf(stateOf(state))])
    expect(open()[0]).toMatchObject(texts)
  },
  counters: ({ conditions, deadLetters }: World, [made, kept]: [number, number | null]) =>
    conditions.look(deadLetters.causes(kept, () => made)),
  raise: ({ conditions }: World, [code, count, severity]: [ConditionCode, number, 'info'?]) => {
    for (let n = 0; n < count; n += 1)
      conditions.raise(code, { key: `${n}`, why: 'w.', ...(severity && { severity }) })
  },
  pass: ({ clock }: World, ms: number) => clock.move(ms),
  codes: ({ codes }: World, expected: string[]) => expect(codes()).toEqual(expected),
  counts: ({ open }: World, expected: object) =>
    expect(Object.fromEntries(open().map(({ code, count }) => [code, count]))).toEqual(expected),
  open: ({ open }: World, expected: object[]) => expect(open()).toMatchObject(expected),
  onlyOpen: ({ open }: World, code: ConditionCode) =>
    expect(new Set(open().map((one) => one.code))).toEqual(new Set([code])),
  first: ({ open }: World, expected: object) => expect(open()[0]).toMatchObject(expected),
  hidden: ({ conditions, open }: World, count: number) =>
    expect([conditions.hidden, open().length]).toEqual([count, 64]),
})

test('each reason to ask the support about a batch names the commands that follow', () => {
  for (const reason of ['repeated', 'unlisted'] as const)
    expect(heldActs[reason]).toMatch(/`batches mark-delivered`; if not, `batches reissue`/)
})

test('the open conditions are exactly the states that hold, since the look that saw each first', () => {
  const random = createRandom(11)
  const clock = handClock()
  const changes: string[] = []
  const conditions = createConditions({
    clock,
    emit(event) {
      if ('lastedMs' in event) changes.push(`cleared ${event.code} ${event.key}`)
      if (event.kind === 'condition_raised') changes.push(`raised ${event.code} ${event.key}`)
    },
  })
  const samples = Object.values(stateSamples).map(presentOf)
  const nameOf = ({ code, cause }: (typeof samples)[number]) => `${code} ${cause.key ?? null}`
  let before = new Map<string, number>()
  for (let look = 0; look < 300; look += 1) {
    clock.move(1000)
    const present = samples.filter(() => random.chance(0.3))
    const now = new Map(present.map((one) => [nameOf(one), before.get(nameOf(one)) ?? clock.now()]))
    changes.length = 0
    conditions.look(present)
    const open = conditions.open().map(({ code, key, since }) => [`${code} ${key}`, since] as const)
    expect(new Map(open)).toEqual(now)
    const raised = [...now.keys()].filter((name) => !before.has(name)).map((name) => `raised ${name}`)
    const cleared = [...before.keys()].filter((name) => !now.has(name)).map((name) => `cleared ${name}`)
    expect(changes.toSorted()).toEqual([...raised, ...cleared].toSorted())
    before = now
  }
})
