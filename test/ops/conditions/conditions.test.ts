import { expect, test } from 'vitest'
import { heldActs } from '../../../src/ops/conditions/delivery-conditions.ts'
import type { EventName, GatewayEvent } from '../../../src/domain/event.ts'
import {
  conditionCatalogue,
  specOf,
  type ConditionCode,
} from '../../../src/ops/conditions/condition-catalogue.ts'
import { ConservationCheck } from '../../../src/ops/conservation-check.ts'
import { eventTable } from '../../../src/domain/event.ts'
import type { StageViews } from '../../../src/ops/types.ts'
import { createConditions, type Present } from '../../../src/ops/conditions/conditions.ts'
import { DeadLetterCauses } from '../../../src/ops/conditions/dead-letter-conditions.ts'
import type { State, StateCode } from '../../../src/domain/condition-state.ts'
import { createCauses, presentOf } from '../../../src/ops/conditions/causes.ts'
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
  const held: Present[] = []
  const codes = () => conditions.open().map(({ code, key }) => (key === null ? code : `${code} ${key}`))
  return { clock, conditions, deadLetters, held, codes, open: () => conditions.open() }
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
  raise: ({ conditions, held }: World, [code, count, severity]: [ConditionCode, number, 'info'?]) => {
    for (let n = 0; n < count; n += 1)
      held.push({ code, cause: { key: `${n}`, why: 'w.', ...(severity && { severity }) } })
    conditions.look(held)
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

/** Fields that tell conditions of one code apart. */
const naming = ['provider', 'source', 'messageSource', 'listener', 'certificate', 'receiver'] as const

/** The sample of each state, and a second one of another provider, listener, ... where it may hold twice. */
function allStates(): State[] {
  return (Object.values(stateSamples) as State[]).flatMap((state) => {
    const facts = state as State & Partial<Record<(typeof naming)[number], string>>
    const others = naming.filter((name) => facts[name] !== undefined)
    const other = {
      ...facts,
      ...Object.fromEntries(others.map((name) => [name, `${facts[name]}2`])),
    } as State
    return others.length === 0 ? [state] : [state, other]
  })
}

const providerOf = (state: State) => ('provider' in state ? state.provider : null)

/** What a person does not see, because it follows from another one: the effect, and its possible causes. */
const effects: Partial<Record<StateCode, readonly StateCode[]>> = {
  CONTROL_SOCKET_FAILED: ['SPOOL_UNUSABLE', 'STORE_LOST'],
  AUDIT_LOG_FAILED: ['SPOOL_UNUSABLE', 'STORE_LOST'],
  LEDGER_UNAVAILABLE: ['SPOOL_UNUSABLE', 'STORE_LOST'],
  MARK_UNWRITABLE: ['SPOOL_UNUSABLE', 'STORE_LOST'],
  STORE_LOST: ['SPOOL_UNUSABLE', 'SPOOL_DAMAGED'],
  CLOCK_UNKNOWN: ['CLOCK_SUSPECT'],
  // Of the same provider.
  NOTHING_ACCEPTED: ['ENDPOINT_UNAVAILABLE'],
  RETRY_AFTER: ['ENDPOINT_UNAVAILABLE'],
}

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
  let present: State[] = []
  const source = { states: () => present } as unknown as StageViews['traffic']
  const causes = createCauses(
    { ingest: null, spool: null, delivery: null, traffic: source! },
    { deadLetters: new DeadLetterCauses(), conservation: new ConservationCheck(clock), refusal: () => null },
  )
  const samples = allStates()
  const nameOf = (state: State) => `${state.code} ${presentOf(state).cause.key ?? null}`
  const names = samples.map(nameOf)
  expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([])
  let before = new Map<string, number>()
  for (let look = 0; look < 300; look += 1) {
    clock.move(1000)
    present = samples.filter(() => random.chance(0.3))
    const seen = present.filter((state) => {
      const holds = (code: StateCode) =>
        present.some((one) => one.code === code && providerOf(one) === providerOf(state))
      return !(effects[state.code]?.some(holds) ?? false)
    })
    const now = new Map(seen.map((one) => [nameOf(one), before.get(nameOf(one)) ?? clock.now()]))
    changes.length = 0
    conditions.look(causes())
    const open = conditions.open().map(({ code, key, since }) => [`${code} ${key}`, since] as const)
    expect(new Map(open)).toEqual(now)
    const raised = [...now.keys()].filter((name) => !before.has(name)).map((name) => `raised ${name}`)
    const cleared = [...before.keys()].filter((name) => !now.has(name)).map((name) => `cleared ${name}`)
    expect(changes.toSorted()).toEqual([...raised, ...cleared].toSorted())
    before = now
  }
})

test('a service that asks for a wait is one condition, also where it answers nothing else', () => {
  const conditions = createConditions({ clock: handClock() })
  let present: State[] = []
  const causes = createCauses(
    { ingest: null, spool: null, delivery: null, traffic: { states: () => present } },
    {
      deadLetters: new DeadLetterCauses(),
      conservation: new ConservationCheck(handClock()),
      refusal: () => null,
    },
  )
  const { RETRY_AFTER: wait, BATCHES_HELD: held, ENDPOINT_UNAVAILABLE: away } = stateSamples
  const codesOf = (...states: State[]) => {
    present = states
    conditions.look(causes())
    return conditions.open().map(({ code, severity }) => `${severity} ${code}`)
  }
  const deferred: State = { ...held, reason: 'deferred' }
  expect(codesOf(deferred)).toEqual(['warning BATCHES_HELD'])
  expect(codesOf(deferred, wait)).toEqual(['warning RETRY_AFTER'])
  expect(codesOf(deferred, wait, away)).toEqual(['error ENDPOINT_UNAVAILABLE'])
  expect(codesOf(held, wait, away)).toEqual(['error ENDPOINT_UNAVAILABLE', 'error BATCHES_HELD'])
})

test('times of delivery are told in the time of the gateway, where the clock of the machine is known to differ', () => {
  const { RETRY_AFTER: wait } = stateSamples
  const [present] = createCauses(
    {
      ingest: null,
      spool: null,
      delivery: { states: () => [wait] } as unknown as StageViews['delivery'],
      ourTime: { correctionMs: () => 3_600_000 } as unknown as NonNullable<StageViews['ourTime']>,
    },
    {
      deadLetters: new DeadLetterCauses(),
      conservation: new ConservationCheck(handClock()),
      refusal: () => null,
    },
  )()
  expect(present).toEqual(presentOf({ ...wait, untilAt: wait.untilAt + 3_600_000 }))
})

/** What is lost is not found again: they stay until a person has seen them. */
const untilSeen = ['CHUNK_DAMAGED', 'LOG_MENDED', 'RECORDS_UNBALANCED', 'RECORD_DAMAGED', 'WRITES_MISSING']
/** The next start checks all tables. */
const ofStart = ['TABLE_DAMAGED']
/** By the numbers of the spool (causes.ts). */
const counted = [
  'CONSERVATION_BROKEN',
  'DEAD_LETTERS',
  'DEAD_LETTERS_WAITING',
  'DISK_FILLING',
  'SPOOL_FILLING',
  'STORE_FILLING',
]

test('each condition is a state, or is raised by an event and over after a quiet time, or waits for a person', () => {
  const states = new Set<string>(Object.keys(stateSamples))
  const others = (Object.keys(conditionCatalogue) as ConditionCode[]).filter((code) => !states.has(code))
  expect(others.filter((code) => specOf(code).quietMs === undefined).toSorted()).toEqual(
    [...ofStart, ...counted].toSorted(),
  )
  expect(others.filter((code) => specOf(code).quietMs === Infinity).toSorted()).toEqual(untilSeen)
  const raisedBy = new Set(Object.values(eventTable).flatMap(({ raises = {} }) => Object.keys(raises)))
  // The sum of a lane is checked by the numbers and by the recovery.
  const both = 'CONSERVATION_BROKEN'
  const byEvents = others.filter((code) => !counted.includes(code) || code === both)
  expect([...raisedBy].toSorted()).toEqual(byEvents.toSorted())
  const { clock, conditions, codes } = world()
  for (const event of Object.values(eventSamples)) conditions.apply(event)
  expect(codes().length).toBeGreaterThan(15)
  clock.move(86_400_000)
  expect(new Set(conditions.open().map(({ code }) => code))).toEqual(
    new Set([...untilSeen, ...ofStart, both]),
  )
})
