// differential.ts: maps hostile messages with the fast path and without it, and compares everything that can be
// observed: results, writes of the memory, notes, counters. A slow test runs a part of it; for the long run:
//
//   node test/mapping/fast-path/differential.ts --count 1000000 --seed 1
//
// The sources are those of sources.ts, and random ones with each option of a field (random-sources.ts).

import { parseArgs } from 'node:util'
import type { Message } from '../../../src/domain/message.ts'
import type { Mapper, MapResult, NotedDevice } from '../../../src/mapping/mapping.ts'
import { openMapperOf } from '../../support/mapping-world.ts'
import { mutatedBytes } from '../../support/mutate.ts'
import { createRandom, type Random } from '../../support/random.ts'
import { hostileMessage } from './hostile-json.ts'
import { randomTrial, settingsCount } from './random-sources.ts'
import { trials } from './sources.ts'
import { startMs } from './template-values.ts'
import type { Trial } from './trial.ts'

export type DifferentialReport = {
  messages: number
  /** Messages that became payloads. */
  mapped: number
  /** Messages that the fast path mapped, by trial. */
  fast: Map<string, number>
  /** Those of them that had properties of MQTT 5. */
  fastWithProperties: Map<string, number>
  /** The first differences. */
  differences: string[]
}

const differencesMax = 5
const countersEvery = 500
/** Fewer than those after which a source without usual messages is looked at less often. */
const messagesOfRandomSource = 20

export function compareBothWays(options: { count: number; seed: number }): DifferentialReport {
  return reportOf((report) => {
    for (const [index, trial] of trials.entries()) {
      const random = createRandom(options.seed * 1000 + index)
      compareTrial(trial, Math.ceil(options.count / trials.length), random, report)
    }
  })
}

/** With random sources. In the report a trial has the name of the option that its sources were made for. */
export function compareRandomSources(options: { count: number; seed: number }): DifferentialReport {
  return reportOf((report) => {
    const random = createRandom(options.seed)
    const sources = Math.max(settingsCount, Math.ceil(options.count / messagesOfRandomSource))
    for (let index = 0; index < sources; index += 1)
      compareTrial(randomTrial(index, random), messagesOfRandomSource, random, report)
  })
}

function reportOf(compare: (report: DifferentialReport) => void): DifferentialReport {
  const report: DifferentialReport = {
    messages: 0,
    mapped: 0,
    fast: new Map(),
    fastWithProperties: new Map(),
    differences: [],
  }
  JSON.parse = (text: string, ...more: []) => {
    parsed += 1
    return parse(text, ...more)
  }
  try {
    compare(report)
  } finally {
    JSON.parse = parse
  }
  return report
}

/** A mapper, and all that it tells others. */
type Way = { mapper: Mapper; told: string[] }

function openWay({ source, others = [], world }: Trial, fastPath: boolean): Way {
  const told: string[] = []
  const names = ({ device, provider, listed }: NotedDevice) => `${provider} ${device} ${listed}`
  const notes = {
    begin: ({ topic }: Message) => void told.push(`begin ${topic}`),
    heard: (entry: NotedDevice) => void told.push(`heard ${names(entry)}`),
    read: (entry: NotedDevice) => void told.push(`read ${names(entry)}`),
    readPosition(
      entry: NotedDevice,
      at: number,
      isFixed: boolean,
      place: { latitude: number; longitude: number },
    ) {
      told.push(`position ${names(entry)} ${at} ${isFixed} ${place.latitude} ${place.longitude}`)
    },
    ended: (entry: NotedDevice, became: string) => void told.push(`ended ${names(entry)} ${became}`),
    unnamed: () => undefined,
    lost: (entry: NotedDevice, ...why: unknown[]) => void told.push(`lost ${names(entry)} ${why.join(' ')}`),
  }
  const counterReset = (reset: unknown) => void told.push(`reset ${JSON.stringify(reset)}`)
  return { mapper: openMapperOf([source, ...others], { ...world, notes, counterReset, fastPath }), told }
}

function compareTrial(trial: Trial, count: number, random: Random, report: DifferentialReport): void {
  const ways = [openWay(trial, true), openWay(trial, false)] as const
  const clock = { now: startMs }
  let last: Buffer = Buffer.alloc(0)
  let fast = 0
  let fastWithProperties = 0
  for (let index = 0; index < count; index += 1) {
    clock.now += random.below(60_000)
    const whole = random.chance(0.02) ? last : hostileMessage(trial.template(clock, random), random)
    const bytes = random.chance(0.05) ? mutatedBytes(whole, last, random) : whole
    last = whole
    const message = messageOf(bytes, trial, clock.now, random)
    const isLive = random.chance(0.97)
    const parsedBefore = parsed
    const one = told(ways[0], copyOf(message), isLive)
    const parsedByOne = parsed - parsedBefore
    const other = told(ways[1], copyOf(message), isLive)
    if (one.includes('"kind":"payloads"')) {
      report.mapped += 1
      const isFast = parsedByOne === 0
      if (isFast) fast += 1
      if (isFast && (message.userProperties || message.properties)) fastWithProperties += 1
    }
    if (one !== other) note(report, trial, message, one, other)
    if (index % countersEvery === 0 || index === count - 1) {
      const [mine, theirs] = ways.map(({ mapper }) => countersOf(mapper, clock.now)) as [string, string]
      if (mine !== theirs) note(report, trial, message, mine, theirs)
    }
    report.messages += 1
  }
  addTo(report.fast, trial.name, fast)
  addTo(report.fastWithProperties, trial.name, fastWithProperties)
}

function addTo(counts: Map<string, number>, name: string, count: number): void {
  counts.set(name, (counts.get(name) ?? 0) + count)
}

/** Calls of JSON.parse: the fast path makes none. */
let parsed = 0
const { parse } = JSON

function messageOf(bytes: Buffer, trial: Trial, now: number, random: Random): Message {
  const clientId = `client-${random.below(3)}`
  return {
    topic: random.pick(trial.topics),
    bytes,
    qos: 1,
    retain: random.chance(0.01),
    will: random.chance(0.01),
    dup: random.chance(0.02),
    sender: { clientId, userName: null, certificateName: null, identity: null },
    ...propertiesOf(random),
    arrivedAt: now + random.below(2000) - 100,
    serial: random.below(3),
    ...(random.chance(0.3) && {
      arrival: { bootId: 'boot', monotonicMs: 5, offsetMs: random.pick([null, 0, 1500]) },
    }),
    stored: random.chance(0.02) ? { at: now - 5000, serial: random.below(2) } : null,
  }
}

/** Those of most messages of 3.1.1, and of messages of MQTT 5. */
function propertiesOf(random: Random): Pick<Message, 'userProperties' | 'properties'> {
  if (random.chance(0.8)) return random.chance(0.5) ? {} : { userProperties: null, properties: null }
  const userProperties = { tenant: random.pick(['a', 'b', '']), seq: String(random.below(5)) }
  const properties = { contentType: random.pick(['gps', 'status']), expiryS: random.below(3) }
  return {
    userProperties: random.chance(0.7) ? userProperties : null,
    properties: random.chance(0.5) ? properties : null,
  }
}

/** In a larger buffer with other bytes around it, as a socket gives it. */
function copyOf(message: Message): Message {
  const around = Buffer.from('1"}{')
  const all = Buffer.concat([around, message.bytes, around])
  return { ...message, bytes: all.subarray(around.length, all.length - around.length) }
}

/** All that becomes of a message, as text. */
function told({ mapper, told: notes }: Way, message: Message, isLive: boolean): string {
  notes.length = 0
  const { writes, ...result }: MapResult = mapper.map(message, isLive)
  const written = (writes ?? []).map(({ key, value }) => `${key} ${value?.toString('hex')}`)
  return JSON.stringify({ ...result, written, notes })
}

function countersOf(mapper: Mapper, now: number): string {
  const entries = [...mapper.entries()].map(([key, value]) => `${key} ${value.toString('hex')}`)
  const { omitted } = mapper.counters()
  const all = {
    counters: mapper.counters(),
    clocks: [...mapper.deviceClocks()],
    skew: mapper.commonClockSkew(now),
    suspects: mapper.suspects(now),
    withheld: [...mapper.deviceClocks()].map(([device]) => mapper.withheldOf(device)),
    omitted: [...omitted],
    entries,
  }
  return JSON.stringify(all, (_key, value: unknown) => (value instanceof Map ? [...value] : value))
}

function note(
  report: DifferentialReport,
  { name, source, others = [] }: Trial,
  message: Message,
  one: string,
  other: string,
): void {
  if (report.differences.length >= differencesMax) return
  let at = 0
  while (at < one.length && one[at] === other[at]) at += 1
  const near = (text: string) => text.slice(Math.max(0, at - 60), at + 200)
  const shown = message.bytes.toString('latin1').slice(0, 1500)
  report.differences.push(
    `${name} ${message.topic}: ${JSON.stringify(shown)}\n  fast ${near(one)}\n  not  ${near(other)}\n` +
      `  of ${JSON.stringify([source, ...others]).slice(0, 3000)}`,
  )
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { count: { type: 'string', default: '1000000' }, seed: { type: 'string', default: '1' } },
  })
  const options = { count: Number(values.count), seed: Number(values.seed) }
  for (const report of [compareBothWays(options), compareRandomSources(options)]) {
    const { fast, fastWithProperties, ...totals } = report
    const counts = { fast: [...fast], fastWithProperties: [...fastWithProperties] }
    process.stdout.write(`${JSON.stringify({ ...totals, ...counts })}\n`)
    if (report.differences.length > 0) process.exitCode = 1
  }
}
