import { expect, test } from 'vitest'
import { ConservationCheck, type Conservation } from '../../../src/ops/conservation-check.ts'
import { createConditions } from '../../../src/ops/conditions/conditions.ts'
import { createFillCauses } from '../../../src/ops/conditions/fill-conditions.ts'
import {
  handClock,
  ingestCounters,
  opsWorld,
  spoolTotals,
  stages,
  startedOps,
} from '../../support/ops-world.ts'
import { stepCases } from '../../support/step-cases.ts'

const GiB = 1024 ** 3

type World = ReturnType<typeof world>
type Numbers = Partial<Omit<Conservation, 'messages'>> & { messages?: number; isUncertain?: boolean }
type Sizes = {
  open?: number
  state?: number
  free?: number | null
  stores?: Record<'quarantine' | 'dead_letters', [bytes: number, onFull: 'hold' | 'drop_oldest']>
}

function world() {
  const clock = handClock()
  const conditions = createConditions({ clock })
  const conservation = new ConservationCheck(clock)
  return {
    fills: createFillCauses(),
    conditions,
    pass: clock.move,
    check({ messages: difference = 0, isUncertain, ...more }: Numbers) {
      const numbers: Conservation = {
        messages: { received: 10, carried: 0, split: 0, accounted: 10 - difference, difference },
        payloads: { recovered: 0, appended: 0, gone: 0, open: 0, difference: 0 },
        lanes: [],
        ...more,
      }
      conservation.check(numbers, isUncertain)
      conditions.look(conservation.causes())
    },
    open: () => conditions.open(),
  }
}

function totalsOf({ open = 0, state = 0, free = 50, stores }: Sizes) {
  const usual = spoolTotals().stores
  const used = Object.entries(stores ?? {}).map(([name, [bytes, onFull]]) => [
    name,
    { ...usual.quarantine, bytes, bytesMax: 1000, onFull },
  ])
  return spoolTotals({
    bytesMax: 100 * GiB,
    freeBytes: free === null ? null : free * GiB,
    freeBytesMin: GiB,
    openBytes: open * GiB,
    stateBytes: state * GiB,
    stores: { ...usual, ...(Object.fromEntries(used) as typeof usual) },
  })
}

stepCases(import.meta.filename, world, {
  check: ({ check }: World, numbers: Numbers) => check(numbers),
  pass: ({ pass }: World, ms: number) => pass(ms),
  open: ({ open }: World, expected: object[]) => expect(open()).toMatchObject(expected),
  lasts: ({ check, pass, open }: World, [key, wrong, what]: [string, Numbers, unknown]) => {
    check(wrong)
    pass(9999)
    check(wrong)
    expect(open()).toEqual([])
    pass(1)
    check(wrong)
    expect(open()).toMatchObject([{ code: 'CONSERVATION_BROKEN', key, what, severity: 'critical' }])
    check({})
    expect(open()).toEqual([])
  },
  changes: ({ check, pass }: World, differences: number[]) => {
    for (const messages of differences) {
      check({ messages })
      pass(9000)
    }
  },
  fills: ({ fills, conditions, open }: World, [sizes, expected]: [Sizes, string[]]) => {
    conditions.look(fills(totalsOf(sizes)))
    expect(open().map(({ code, key, severity }) => [code, key, severity].join(' '))).toEqual(expected)
  },
})

test('payloads that are missing after a loss of the store do not add up any more', async () => {
  await using of = opsWorld()
  const recovered = { lanes: 1, batches: 0, bytes: 1, windowIds: 0, damaged: 0, tookMs: 1 }
  const recover = (payloads: number, unconfirmedWrites: number) =>
    of.ops.emit({ kind: 'spool_recovered', ...recovered, payloads, unconfirmedWrites })
  recover(7, 0)
  of.ops.attach(stages({ ingest: ingestCounters(), lanes: [] }))
  const sum = () => of.ops.status().internals.conservation.payloads
  const before = sum().difference
  recover(0, 0)
  expect(sum()).toMatchObject({ recovered: 7, difference: before })
  // A write that failed and is there all the same explains a difference.
  recover(0, 1)
  expect(sum()).toMatchObject({ difference: 0 })
})

test('a sum that does not add up is in the log within 30 s, though nobody asks', async () => {
  await using world = await startedOps()
  world.ops.attach(stages({ ingest: ingestCounters({ received: 3 }) }))
  world.clock.move(30_000)
  const broken = world.output.lines().filter(({ code }) => code === 'CONSERVATION_BROKEN')
  expect(broken).toMatchObject([{ event: 'condition_raised', level: 'error', key: 'messages' }])
})
