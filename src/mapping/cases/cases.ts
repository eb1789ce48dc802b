// cases.ts: tests of a mapping that are data: message in, payload out, or the reason why not. A file NAME.cases.yaml
// stands beside the preset or the config that it tries.
//
//   devices: { '864636060000001': { model: FMC650 } }     rows of the device table, where they matter
//   source: { no_fix: keep }                              beside a preset: what a source would say over it
//   cases:
//     - name: a truck on the road
//       topic: fleet/864636060000001/data
//       message: '{"ts":1767085201000,"lat":51.3,"lon":9.4}'
//       payloads: [{ device: '864636060000001', time: 1767085201000, gps: { latitude: 51.3, longitude: 9.4 } }]
//     - { name: a status, topic: fleet/1/status, message: up, ignored: excluded topic }
//     - { name: no time, topic: fleet/1/data, message: '{"lat":51.3,"lon":9.4}', refused: NO_TIME }
//
// A source with an expression (`jsonata`) is evaluated as the daemon does it, with the same limits.
//
// Each case begins with a mapper that knows nothing. What a case does not state must not happen: no further payload,
// no refusal; only what is ignored in a sequence of `messages` need not be told. After its last message everything
// that still waits is closed.
//
// Compared are device, time, gps (all of it but what `fields` names) and signals (all but their ids); of further
// fields those that `fields` names.

import { z } from 'zod'
import { assert, assertNever } from '../../std/assert.ts'
import type { Clock, EpochMs } from '../../std/clock.ts'
import { duration } from '../../std/schema.ts'
import { defaultProvider, type ProviderName } from '../../domain/ids.ts'
import type { Message } from '../../domain/message.ts'
import { compileSources } from '../compile/compile.ts'
import type { MappingConfig } from '../config.ts'
import { text } from '../source-config/map-config.ts'
import { compareCase, type ActualResult } from './case-comparison.ts'
import { deviceColumns, noDevices, type DeviceRow, type DeviceTable } from '../devices/device-table.ts'
import { createMapper } from '../mapper/mapper.ts'
import type { Mapper } from '../mapper/mapper.ts'
import { presetSchema } from '../source-config/preset-merge.ts'
import type { StateChanges } from '../state/state-changes.ts'
import { evaluateMessage, mapEvaluation, openEvaluator } from '../jsonata/message-evaluation.ts'
import type { Evaluation, Evaluator } from '../jsonata/jsonata.ts'
import type { MapResult } from '../types.ts'

const sent = {
  topic: text(65_535).optional().describe('The topic that it comes on.'),
  message: z.string().optional().describe('The message as text.'),
  hex: z
    .string()
    .regex(/^([0-9a-fA-F]{2})*$/, 'must be pairs of hexadecimal digits')
    .optional()
    .describe('The message as bytes.'),
  retain: z.boolean().default(false).describe('It comes with the retain flag.'),
  dup: z.boolean().default(false).describe('The device says that it sent it before.'),
}

const step = z.strictObject({
  ...sent,
  after: duration({ minMs: 0, maxMs: 365 * 86_400_000 })
    .optional()
    .describe('How long after the message before.'),
})

const payload = z.strictObject({
  device: text(512),
  time: z
    .union([z.int(), z.literal('arrival')])
    .describe('`signalTimestamp` in milliseconds, or `arrival` where the message has no time.'),
  gps: z.record(z.string(), z.unknown()).optional().describe('All of it; without this there must be none.'),
  signals: z
    .array(
      z.strictObject({
        type: z.string(),
        value: z.string(),
        valueUnit: z.string().optional(),
        assetPart: z.string().optional(),
      }),
    )
    .default([])
    .describe('All of them, without their ids.'),
  fields: z
    .record(z.string(), z.unknown())
    .default({})
    .describe(
      'Further fields of the payload by their dotted names, such as gps.altitude; others are not looked at.',
    ),
})

const mappingCase = z
  .strictObject({
    name: text(200).describe('What the case shows, as a sentence.'),
    ...sent,
    messages: z.array(step).min(1).max(1000).optional().describe('A sequence instead of one message.'),
    client: text(256).default('case').describe('Client id of the sender.'),
    user: text(256).optional().describe('User name of the sender.'),
    certificate: text(256).optional().describe("Common name of the sender's certificate."),
    at: z.iso
      .datetime({ offset: true, error: 'must be a time such as 2026-01-28T15:00:08Z' })
      .optional()
      .describe('When the first message arrives. Default: now.'),
    payloads: z.array(payload).min(1).optional(),
    ignored: text(8192).optional().describe('The reason; `when` for any condition of the source.'),
    refused: text(64).optional().describe('The reason of the dead letter, such as BAD_POSITION.'),
    quarantined: text(64).optional().describe('The reason, such as FUTURE.'),
  })
  .superRefine(({ topic, message, hex, messages, ...expected }, context) => {
    const ways = [message, hex, messages].filter((way) => way !== undefined)
    if (ways.length !== 1) refuse(context, 'needs one of message, hex and messages')
    const steps = messages ?? [{ topic, message, hex }]
    if (steps.some((one) => one.topic === undefined)) refuse(context, 'needs a topic for each message')
    if (messages?.some((one) => (one.message === undefined) === (one.hex === undefined)))
      refuse(context, 'needs message or hex in each of its messages')
    const { payloads, ignored, refused, quarantined } = expected
    if ([payloads, ignored, refused, quarantined].every((one) => one === undefined))
      refuse(context, 'must say what it expects: payloads, ignored, refused or quarantined')
  })

const rowColumns = deviceColumns.filter((column) => column !== 'device')

export const casesSchema = z.strictObject({
  source: presetSchema.optional(),
  devices: z.record(text(512), z.partialRecord(z.enum(rowColumns), text(256))).default({}),
  cases: z.array(mappingCase).min(1).max(10_000),
})

export type CasesFile = z.output<typeof casesSchema>
type Case = CasesFile['cases'][number]

export type CaseResult = { name: string; passed: boolean; diff: readonly string[] }

export type RunCasesOptions = {
  /** Compiles without a problem. */
  mapping: MappingConfig
  /** The device table under the rows of the file. */
  devices?: DeviceTable
  providers?: readonly ProviderName[]
  /** When messages arrive where a case does not say. */
  nowMs: EpochMs
  /** Times the expressions of sources. */
  clock: Clock
}

/** Plays each case to a mapper of its own. */
export async function runCases(
  { cases, devices: rows }: CasesFile,
  options: RunCasesOptions,
): Promise<CaseResult[]> {
  const { mapping, providers = [defaultProvider], nowMs, clock } = options
  const { sources, problems } = compileSources(mapping)
  assert(problems.length === 0, 'the mapping was checked')
  const { future_max: futureMaxMs, on_future: onFuture } = mapping.clocks
  const devices = withRows(rows, options.devices ?? noDevices)
  const open = () =>
    createMapper(
      { devices, clockOffsetMs: () => 0 },
      { sources, providers, clocks: { futureMaxMs, onFuture } },
    )
  const evaluator = openEvaluator(clock, open())
  try {
    const judged: CaseResult[] = []
    for (const one of cases) {
      const mapper = open()
      const messages = messagesOf(one, nowMs)
      const answers = evaluator === null ? noAnswers : await answersTo(messages, mapper, evaluator)
      const diff = compareCase(one, replayMessages(mapper, messages, answers))
      judged.push({ name: one.name, passed: diff.length === 0, diff })
    }
    return judged
  } finally {
    await evaluator?.close()
  }
}

type Answers = ReadonlyMap<Message, Evaluation>

const noAnswers: Answers = new Map()

/** What expressions give for those messages that have one. */
async function answersTo(
  messages: readonly Message[],
  mapper: Mapper,
  evaluator: Pick<Evaluator, 'evaluate'>,
): Promise<Answers> {
  const answers = new Map<Message, Evaluation>()
  for (const message of messages) {
    // A message that is of another source has nothing that the expression is evaluated over.
    for (const source of mapper.expressions.keys()) {
      const answer = await evaluateMessage(message, source, mapper, evaluator)
      if (answer !== null) answers.set(message, answer)
    }
  }
  return answers
}

/**
 * Gives messages to a mapper as the intake would, and closes what is open at the end. `answers` are those of
 * expressions; without its answer a message stays deferred.
 */
export function replayMessages(
  mapper: Mapper,
  messages: readonly Message[],
  answers: Answers = noAnswers,
): ActualResult {
  const happened: ActualResult = {
    payloads: [],
    ignored: [],
    refused: [],
    quarantined: [],
    deferred: false,
    arrivals: messages.map(({ arrivedAt }) => arrivedAt),
    isSequence: messages.length > 1,
  }
  for (const message of messages) {
    tickUntil(mapper, message.arrivedAt, happened)
    const result = mapper.map(message)
    const answer = answers.get(message) ?? null
    const ended = result.kind === 'deferred' ? mapEvaluation(mapper, message, result.source, answer) : null
    note(ended ?? result, mapper, happened)
  }
  tickUntil(mapper, Number.POSITIVE_INFINITY, happened)
  return happened
}

function tickUntil(mapper: Mapper, untilMs: EpochMs, happened: ActualResult): void {
  for (;;) {
    const at = mapper.nextTickAt()
    if (at === null || at > untilMs) return
    const applied = mapper.tick(Math.max(at, 0))
    if (applied === null) return
    noteApplied(applied, happened)
  }
}

function note(result: MapResult, mapper: Mapper, happened: ActualResult): void {
  switch (result.kind) {
    case 'payloads':
      happened.payloads.push(...result.payloads)
      return
    case 'ignored':
      happened.ignored.push(result.reason)
      return
    case 'unmappable':
      happened.refused.push(result)
      return
    case 'quarantined':
      happened.quarantined.push(result)
      return
    case 'deferred':
      happened.deferred = true
      return
    case 'part':
      noteApplied(mapper.apply(), happened)
      return
    default:
      assertNever(result)
  }
}

function noteApplied({ payloads, unsent }: StateChanges, happened: ActualResult): void {
  happened.payloads.push(...payloads)
  for (const one of unsent) {
    if (one.kind === 'ignored') happened.ignored.push(one.reason)
    else if (one.kind === 'quarantined') happened.quarantined.push(one)
    else happened.refused.push(one)
  }
}

function messagesOf(one: Case, nowMs: EpochMs): Message[] {
  const sender = {
    clientId: one.client,
    userName: one.user ?? null,
    certificateName: one.certificate ?? null,
  }
  let arrivedAt = one.at === undefined ? nowMs : Date.parse(one.at)
  const steps = one.messages ?? [{ ...one, after: 0 }]
  return steps.map(({ topic = '', message, hex, retain, dup, after = 0 }) => {
    arrivedAt += after
    const bytes = hex === undefined ? Buffer.from(message ?? '') : Buffer.from(hex, 'hex')
    return { topic, bytes, qos: 1, retain, dup, sender, arrivedAt }
  })
}

/** The rows of a cases file over those of `beneath`. */
function withRows(rows: CasesFile['devices'], beneath: DeviceTable): DeviceTable {
  const own = new Map<string, DeviceRow>(Object.entries(rows) as [string, DeviceRow][])
  return {
    find: (device) => own.get(device) ?? beneath.find(device),
    size: beneath.size + [...own.keys()].filter((device) => !beneath.find(device)).length,
  }
}

function refuse(context: z.RefinementCtx, message: string): void {
  context.addIssue({ code: 'custom', message })
}
