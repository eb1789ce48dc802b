// fuzz.ts: broken messages against every preset. A test runs a part of it; for the long run:
//
//   node test/mapping/fuzz.ts --messages 1000000 --seed 1
//
// The messages of all cases are mutated and given to mappers as the intake does. The mapper must never
// throw, must give one of the results in bounded time, and a payload must be valid for the service, with every
// field within the bounds of its quantity (payload-bounds.ts). Durable state must be bounded, and empty when
// all windows are closed, except for births of Sparkplug.

import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { loadPresetCases } from '../../src/config/case-files.ts'
import type { Message } from '../../src/domain/message.ts'
import type { MappedPayload } from '../../src/domain/payload.ts'
import { compileSources } from '../../src/mapping/compile/compile.ts'
import type { CasesFile } from '../../src/mapping/cases/case-schema.ts'
import type { MappingConfig } from '../../src/mapping/config.ts'
import type { DeviceRow } from '../../src/mapping/devices/device-table.ts'
import { isDecoderState, createMapper, type Mapper, type MapResult } from '../../src/mapping/mapping.ts'
import { memoryKeyHead } from '../../src/mapping/memory/memory.ts'
import type { StateChanges } from '../../src/mapping/types.ts'
import { createPayloadCheck, isJsonObject } from '../../src/sandbox/payload-check.ts'
import { mutatedBytes, mutatedTopic } from '../support/mutate.ts'
import { outOfBounds } from '../support/payload-bounds.ts'
import { createRandom, type Random } from '../support/random.ts'
import type { StateWrite } from '../../src/mapping/types.ts'

const folder = resolve(import.meta.dirname, '../../config/presets')
const casesEnd = '.cases.yaml'
const kinds: ReadonlySet<string> = new Set<MapResult['kind']>([
  'payloads',
  'ignored',
  'part',
  'quarantined',
  'unmappable',
])
/** What is mutated: a message of a case. */
type Seed = Pick<Message, 'topic' | 'bytes' | 'retain' | 'dup' | 'sender'>

export type Trial = {
  preset: string
  open: () => Mapper
  seeds: readonly Seed[]
  /** Whether the result of a message depends on earlier ones: thinning, or positions in two messages. */
  remembers: boolean
}

export type FuzzReport = {
  messages: number
  payloads: number
  /** Results by kind, with the reason of those that have one. */
  endings: Map<string, number>
  /** Values that were left out because they are not plausible, or placeholders. */
  withheld: number
  stateBytesMax: number
  /** State left after all windows closed, by preset. */
  stateLeft: Map<string, number>
  faults: string[]
}

const faultsMax = 20

/** All presets with the messages of their cases. */
export async function loadTrials(): Promise<Trial[]> {
  const deps = { env: {}, readText: (path: string) => readFile(path, 'utf8') }
  const files = readdirSync(folder).filter((file) => file.endsWith(casesEnd))
  return Promise.all(
    files.map(async (file) => {
      const { cases, mapping } = await loadPresetCases(join(folder, file), deps)
      const remembers = mapping.sources.some(
        ({ thin, encoding }) => thin !== undefined || encoding === 'sparkplug',
      )
      const preset = file.replace(casesEnd, '')
      return { preset, open: opener(cases, mapping), seeds: seedsOf(cases), remembers }
    }),
  )
}

function opener({ devices: rows }: CasesFile, mapping: MappingConfig): () => Mapper {
  const { sources } = compileSources(mapping)
  const { future_max: futureMaxMs, on_future: onFuture } = mapping.clocks
  const table = new Map(Object.entries(rows) as [string, DeviceRow][])
  const devices = { find: (device: string) => table.get(device), size: table.size }
  return () =>
    createMapper({ devices, clockOffsetMs: () => 0 }, { sources, clocks: { futureMaxMs, onFuture } })
}

function seedsOf({ cases }: CasesFile): Seed[] {
  return cases.flatMap((one) => {
    const sender = {
      clientId: one.client,
      userName: one.user ?? null,
      certificateName: one.certificate ?? null,
      identity: one.identity ?? null,
    }
    return (one.messages ?? [one]).map(({ topic = '', message, hex, retain, dup }) => {
      const bytes = hex === undefined ? Buffer.from(message ?? '') : Buffer.from(hex, 'hex')
      return { topic, bytes, retain, dup, sender }
    })
  })
}

/** Shares the messages among the presets; each has one mapper for all of its own. */
export function fuzz(trials: readonly Trial[], options: { messages: number; seed: number }): FuzzReport {
  const report: FuzzReport = {
    messages: 0,
    payloads: 0,
    endings: new Map(),
    withheld: 0,
    stateBytesMax: 0,
    stateLeft: new Map(),
    faults: [],
  }
  const each = Math.ceil(options.messages / trials.length)
  const foreign = trials.flatMap(({ seeds }) => seeds)
  for (const [index, trial] of trials.entries())
    fuzzPreset(trial, foreign, each, createRandom(options.seed * 1000 + index), report)
  return report
}

function fuzzPreset(
  trial: Trial,
  foreign: readonly Seed[],
  messages: number,
  random: Random,
  report: FuzzReport,
): void {
  const { preset, open, seeds } = trial
  const mapper = open()
  const stored = createStored(report)
  let arrivedAt = Date.UTC(2026, 1, 1)
  for (let count = 0; count < messages; count += 1) {
    const seed = random.pick(seeds)
    const bytes = mutatedBytes(seed.bytes, random.pick(random.chance(0.9) ? seeds : foreign).bytes, random)
    const topic = random.chance(0.95) ? seed.topic : mutatedTopic(seed.topic, random)
    arrivedAt += random.below(2) * random.below(2000)
    const message: Message = { ...seed, bytes, topic, qos: 1, arrivedAt }
    try {
      close(mapper, arrivedAt, stored, report)
      give(mapper, message, trial, stored, report)
    } catch (error) {
      if (report.faults.length < faultsMax) report.faults.push(faultOf(preset, message, error))
    }
    report.messages += 1
  }
  close(mapper, Number.POSITIVE_INFINITY, stored, report)
  for (const [key, count] of mapper.counters().omitted)
    if (/(above maximum|below minimum|a placeholder)$/.test(key)) report.withheld += count
  const left = mapper.openParts() + stored.left()
  if (left > 0) report.stateLeft.set(preset, left)
}

function give(mapper: Mapper, message: Message, trial: Trial, stored: Stored, report: FuzzReport): void {
  const result = mapper.map(message)
  let applied: StateChanges | null = null
  if (result.kind === 'part') applied = result.apply()
  if (!kinds.has(result.kind)) throw new Error(`a result of no kind: ${JSON.stringify(result)}`)
  const ending = 'reason' in result ? `${result.kind} ${result.reason}` : result.kind
  report.endings.set(ending, (report.endings.get(ending) ?? 0) + 1)
  stored.write(result.writes ?? [])
  if (applied !== null) noteApplied(applied, stored, report)
  if (result.kind === 'payloads') {
    judgePayloads(result.payloads, report)
    if (!trial.remembers) refuseOther(mapper.map(message, false), result.payloads)
  }
}

function close(mapper: Mapper, untilMs: number, stored: Stored, report: FuzzReport): void {
  for (;;) {
    const at = mapper.nextTickAt()
    if (at === null || at > untilMs) return
    const applied = mapper.tick(Math.max(at, 0))
    if (applied === null) return
    noteApplied(applied, stored, report)
  }
}

function noteApplied({ payloads, writes, unsent }: StateChanges, stored: Stored, report: FuzzReport): void {
  stored.write(writes)
  judgePayloads(payloads, report)
  for (const { kind, reason } of unsent) {
    const ending = `part ${kind} ${reason}`
    report.endings.set(ending, (report.endings.get(ending) ?? 0) + 1)
  }
}

const check = createPayloadCheck(
  new Set(['payloadId', 'identity', 'content', 'position', 'signal', 'timestamp'] as const),
)

/** Each is valid for the service, with every field within its bounds. */
function judgePayloads(payloads: readonly MappedPayload[], report: FuzzReport): void {
  for (const { json, payloadId, windowKey, deviceTime } of payloads) {
    const payload: unknown = JSON.parse(json)
    if (!isJsonObject(payload)) throw new Error(`a payload is no object: ${json}`)
    const [problem] = check(payload, true)
    if (problem) throw new Error(`${problem.message} in ${json}`)
    const outside = outOfBounds(payload)
    if (outside !== null) throw new Error(`${outside} in ${json}`)
    const { gps, signalTimestamp } = payload
    if (payload['payloadId'] !== payloadId) throw new Error(`another payloadId than ${payloadId} in ${json}`)
    if (!/^[0-9a-f]{32}$/.test(windowKey)) throw new Error(`the window key ${windowKey}`)
    if (deviceTime !== null && deviceTime !== signalTimestamp) throw new Error(`another time in ${json}`)
    if (isJsonObject(gps) && gps['latitude'] === 0 && gps['longitude'] === 0)
      throw new Error(`a place of 0, 0 in ${json}`)
  }
  report.payloads += payloads.length
}

/** For a message that has the same payloadIds whenever it comes. */
function refuseOther(again: MapResult, before: readonly MappedPayload[]): void {
  const ids = (payloads: readonly MappedPayload[]) => payloads.map(({ payloadId }) => payloadId).join()
  const found = again.kind === 'payloads' ? ids(again.payloads) : again.kind
  if (found !== ids(before))
    throw new Error(`mapped once more it is another one: ${ids(before)} became ${found}`)
}

/** What is durable, as the spool would hold it. */
type Stored = { write(writes: readonly StateWrite[]): void; left(): number }

function createStored(report: FuzzReport): Stored {
  const values = new Map<string, number>()
  let bytes = 0
  return { write, left }

  function write(writes: readonly StateWrite[]): void {
    for (const { key, value } of writes) {
      bytes += (value?.length ?? 0) - (values.get(key) ?? 0)
      if (value === null) values.delete(key)
      else values.set(key, value.length)
    }
    report.stateBytesMax = Math.max(report.stateBytesMax, bytes)
  }

  function left(): number {
    return [...values.keys()].filter((key) => !isDecoderState(key) && !key.startsWith(memoryKeyHead)).length
  }
}

function faultOf(preset: string, { topic, bytes }: Message, error: unknown): string {
  const what = error instanceof Error ? (error.stack ?? error.message) : String(error)
  const shown = bytes.length > 600 ? `${bytes.toString('hex', 0, 600)}...` : bytes.toString('hex')
  return `${preset} on ${JSON.stringify(topic.slice(0, 200))}: ${what.slice(0, 900)}\n  bytes ${shown}`
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      messages: { type: 'string', default: '1000000' },
      seed: { type: 'string', default: '1' },
    },
  })
  const startedMs = performance.now()
  const report = fuzz(await loadTrials(), { messages: Number(values.messages), seed: Number(values.seed) })
  const tookMs = performance.now() - startedMs
  const { rss, heapUsed } = process.memoryUsage()
  const endings = [...report.endings].toSorted(([, a], [, b]) => b - a)
  const shown = { ...report, endings, stateLeft: [...report.stateLeft], tookMs, rss, heapUsed }
  process.stdout.write(`${JSON.stringify(shown, null, 1)}\n`)
  if (report.faults.length > 0) process.exitCode = 1
}
