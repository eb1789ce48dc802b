import { expect, test } from 'vitest'
import { heldActs } from '../../../src/ops/ops.ts'
import type { EventName, GatewayEvent } from '../../../src/domain/event.ts'
import type { ProviderName } from '../../../src/domain/ids.ts'
import type { ConditionCode } from '../../../src/ops/conditions/condition-catalogue.ts'
import { createConditions } from '../../../src/ops/conditions/conditions.ts'
import { createEventConditions } from '../../../src/ops/conditions/event-conditions.ts'
import { eventSamples } from '../../support/event-samples.ts'
import { handClock } from '../../support/ops-world.ts'
import { stepCases } from '../../support/step-cases.ts'

/** The sample of a name, or the sample with other fields. */
type Written = EventName | Partial<Record<EventName, object>>
type World = ReturnType<typeof world>

const other = 'other' as ProviderName

function world() {
  const clock = handClock()
  const conditions = createConditions({ clock })
  const rules = createEventConditions(conditions)
  const codes = () => conditions.open().map(({ code, key }) => (key === null ? code : `${code} ${key}`))
  return { clock, conditions, rules, codes, open: () => conditions.open() }
}

function eventOf(written: Written): GatewayEvent {
  if (typeof written === 'string') return eventSamples[written]
  const [[name, fields] = []] = Object.entries(written) as [EventName, object][]
  return { ...eventSamples[name!], ...fields }
}

stepCases(import.meta.filename, world, {
  apply: ({ rules }: World, events: Written | Written[]) => {
    for (const event of [events].flat()) rules.apply(eventOf(event))
  },
  /** That it is over for another provider ends nothing. */
  lifetime: ({ rules, codes }: World, [code, begins, ends]: [string, Written, Written]) => {
    const end = eventOf(ends)
    rules.apply(eventOf(begins))
    expect(codes()).toEqual([code])
    if ('provider' in end) rules.apply({ ...end, provider: other })
    expect(codes()).toEqual([code])
    rules.apply(end)
    expect(codes()).toEqual([])
  },
  says: ({ rules, open }: World, [event, texts]: [Written, object]) => {
    rules.apply(eventOf(event))
    expect(open()[0]).toMatchObject(texts)
  },
  counters: ({ rules }: World, [letters, kept, dropped = 0]: [number, number | null, number?]) =>
    rules.reconcile({ DEAD_LETTERS: letters, MESSAGES_DROPPED: dropped, deadLettersKept: kept }),
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
