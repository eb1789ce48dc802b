// /status and /metrics of views of the stages. Of a whole gateway: test/cli/transcripts, http/http-routing/openapi.test.ts.

import { expect, onTestFinished, test } from 'vitest'
import type { ProviderName } from '../../src/domain/ids.ts'
import type { EventName } from '../../src/domain/event.ts'
import type { ProviderView } from '../../src/delivery/types.ts'
import type { MessageSourceStatus } from '../../src/ingest/ingest.ts'
import { statusSchema } from '../../src/ops/status-schema/status-schema.ts'
import { eventSamples, stateSamples } from '../support/event-samples.ts'
import { mappingStage } from '../support/mapping-stage.ts'
import {
  deliveryCounters,
  ingestCounters,
  lane,
  provider,
  spoolTotals,
  stages,
  startedOps,
} from '../support/ops-world.ts'
import { stepCases } from '../support/step-cases.ts'

type Given = Record<string, MessageSourceStatus> | undefined
type Lanes = Parameters<typeof lane>[]
type Written = {
  ingest?: Parameters<typeof ingestCounters>[0]
  totals?: Parameters<typeof spoolTotals>[0]
  lanes?: Lanes
  providers?: [string, Partial<ProviderView>][]
  delivery?: { outcomes?: Record<string, number> }
  mapping?: Parameters<typeof mappingStage>[0]
}
type World = Awaited<ReturnType<typeof world>>

async function world(given: Given) {
  const made = await startedOps()
  onTestFinished(() => made[Symbol.asyncDispose]())
  return { ...made, sources: given ?? {} }
}

function viewsOf({ ingest, totals, lanes = [], providers = [], delivery = {}, mapping }: Written) {
  const { outcomes = {}, ...counters } = delivery
  const views = stages({
    ingest: ingestCounters(ingest),
    totals: spoolTotals(totals),
    lanes: lanes.map((one) => lane(...one)),
    providers: providers.map((one) => provider(...one)),
    delivery: deliveryCounters({ ...counters, outcomes: new Map(Object.entries(outcomes)) }),
  })
  return { ...views, ...(mapping && { mapping: mappingStage(mapping) }) }
}

/** Those of the lines that the metrics do not have. */
const missingIn = (text: string, lines: readonly string[]) =>
  lines.filter((line) => !text.includes(`${line}\n`))

const lanesOf = ({ ops }: World) => ops.status().lanes

stepCases(import.meta.filename, world, {
  attach: ({ ops }: World, written: Written) => ops.attach(viewsOf(written)),
  emit: ({ ops }: World, [name, fields]: [EventName, object]) =>
    ops.emit({ ...eventSamples[name], ...fields }),
  status: async ({ json }: World, expected: object) => {
    const answer = await json('/status')
    expect(statusSchema.parse(answer)).toEqual(answer)
    expect(answer).toMatchObject(expected)
  },
  lanes: (of: World, expected: object[]) => expect(lanesOf(of)).toMatchObject(expected),
  drains: (of: World, [lanes, more, seconds, held]: [Lanes, Partial<ProviderView>, unknown[], number[]]) => {
    of.ops.attach(viewsOf({ lanes, providers: [['default', more]] }))
    expect(lanesOf(of).map(({ secondsToDrain }) => secondsToDrain)).toEqual(seconds)
    expect(lanesOf(of).map((one) => one.held)).toEqual(held)
  },
  accounts: ({ ops }: World, expected: object) =>
    expect(ops.status().internals.conservation).toMatchObject(expected),
  accountsForLane: ({ ops }: World, expected: object) =>
    expect(ops.status().internals.conservation.lanes).toContainEqual(expected),
  triesAgain: ({ ops }: World, [next, more]: [string, Partial<ProviderView>]) => {
    ops.attach(stages({ providers: [provider('north', more)], states: [stateSamples.ENDPOINT_UNAVAILABLE] }))
    expect(ops.status().conditions[0]?.what).toBe(
      `Cannot deliver for provider "north": the service answers 500. Data is kept. ${next}`,
    )
  },
  metrics: async ({ metrics }: World, lines: string[]) =>
    expect(missingIn(await metrics(), lines)).toEqual([]),
  absent: async ({ metrics }: World, names: string[]) => {
    const text = await metrics()
    for (const name of names) expect(text).not.toMatch(new RegExp(`^${name} `, 'm'))
  },
  sources: ({ ops, sources }: World, names: string[]) => {
    const messageSources = names.map((name) => sources[name]!)
    ops.attach({
      ingest: { counters: () => ingestCounters(), addresses: () => [], messageSources: () => messageSources },
    })
  },
  /** By the end of their names. */
  sourceMetrics: async ({ metrics }: World, expected: object) => {
    const samples: Record<string, string[]> = {}
    const pattern = /^gateway_(?:message_source_)?(\w+)\{message_source="(\w+)"\} (\S+)$/gm
    for (const [, name = '', source = '', value = ''] of (await metrics()).matchAll(pattern))
      (samples[name] ??= []).push(`${source} ${value}`)
    expect(samples).toEqual(expected)
  },
})

test('the status is an error with a reason while a stage throws, and the other paths answer', async () => {
  const { ops, ask } = await world(undefined)
  const { spool } = stages({})
  const lanes = () => {
    throw new Error('closing')
  }
  ops.attach({ spool: spool && { ...spool, lanes } })
  const answer = await ask('/status')
  expect(answer.status).toBe(500)
  expect(JSON.parse(answer.text)).toMatchObject({ why: 'closing' })
  expect((await ask('/healthz')).status).toBe(200)
})

test('the metrics have short stable codes as label values, except for names', async () => {
  const { ops, metrics } = await world(undefined)
  const reasons = [{ source: 'my trucks', reason: 'no fix', count: 1 }]
  const words = new Map([['The client id is longer than 256 bytes.', 2]])
  ops.attach({
    ...viewsOf({
      lanes: [[1]],
      providers: [['North Haulage', {}]],
      delivery: { outcomes: { unavailable_500: 4 } },
      ingest: {
        ignoredByReason: reasons,
        deadByReason: reasons,
        quarantinedByReason: reasons,
        refusedByReason: words,
        droppedByReason: words,
      },
      mapping: { omitted: [{ source: 'my trucks', field: 'speed', reason: 'not a number', values: 4 }] },
    }),
  })
  for (const event of Object.values(eventSamples)) ops.emit(event)
  const text = await metrics()
  const names = new Set(['provider', 'source', 'field', 'le'])
  const codes = [...text.matchAll(/[{,](\w+)="((?:[^"\\]|\\.)*)"/g)]
    .filter(([, label = '']) => !names.has(label))
    .map(([, , value = '']) => value)
  expect(codes.length).toBeGreaterThan(30)
  expect(codes.filter((code) => !/^[A-Za-z0-9_.:-]{1,64}$/.test(code))).toEqual([])
  expect(text).toContain('gateway_messages_ignored_total{source="my trucks",reason="no_fix"} 1\n')
  expect(text).toContain(`gateway_build_info{version="1.2.3",node="${process.version}"} 1\n`)
})

test('the metrics of one gateway are not those of another in the same process', async () => {
  const [first, second] = [await world(undefined), await world(undefined)]
  first.ops.attach(viewsOf({ ingest: { received: 7 } }))
  expect(missingIn(await second.metrics(), ['gateway_messages_received_total 0'])).toEqual([])
})

test('the metrics have a bounded number of label values: those beyond it are added up in one', async () => {
  const { ops, metrics } = await world(undefined)
  const many = Array.from({ length: 5000 }, (_, n) => ({ source: `s${n}`, reason: 'R', count: 2 }))
  const states = Array.from({ length: 500 }, (_, n) => ({
    ...stateSamples.BATCHES_HELD,
    provider: `p-${n}` as ProviderName,
  }))
  ops.attach(stages({ ingest: ingestCounters({ deadByReason: many, ignoredByReason: many }), states }))
  const text = await metrics()
  expect(missingIn(text, ['gateway_messages_dead_total{source="other",reason="other"} 9800'])).toEqual([])
  expect(text.match(/^gateway_messages_dead_total\{/gm)).toHaveLength(101)
  expect(text.split('\n').length).toBeLessThan(950)
})
