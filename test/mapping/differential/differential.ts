// differential.ts: maps hostile messages with the mapping of this checkout and with that of another one, and compares
// what can be observed: results, writes of the memory, notes, counters. Nothing of it may differ after a change of
// the inside of the mapping, except what the change is about.
//
//   git worktree add --detach /tmp/before main
//   node test/mapping/differential/differential.ts --other /tmp/before --count 1000000 --seed 1
//
// The sources are those of sources.ts, random ones with each option of a field (random-sources.ts), and all presets with
// the messages of their cases. `--sent` compares payloads and reasons alone.

import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { Message } from '../../../src/domain/message.ts'
import type {
  Mapper,
  MapResult,
  NotedDevice,
  StateChanges,
  StateWrite,
} from '../../../src/mapping/mapping.ts'
import { mutatedBytes } from '../../support/mutate.ts'
import { createRandom, type Random } from '../../support/random.ts'
import { hostileMessage } from './hostile-json.ts'
import { randomTrial, settingsCount } from './random-sources.ts'
import { trials } from './sources.ts'
import { startMs } from './template-values.ts'
import type { Trial } from './trial.ts'

/** What a checkout has for this. */
type Checkout = {
  openMapperOf: typeof import('../../support/mapping-world.ts').openMapperOf
  loadTrials: typeof import('../fuzz.ts').loadTrials
}

type Report = {
  messages: number
  /** Messages that became payloads. */
  mapped: number
  /** By trial: how many messages differ, and the first of them. */
  differences: Map<string, { count: number; first: string }>
}

/** A mapper, and all that it tells others. */
type Side = { mapper: Mapper; told: string[] }

type Next = { message: Message; isLive: boolean }

const countersEvery = 500
const messagesOfRandomSource = 20

const { values } = parseArgs({
  options: {
    other: { type: 'string' },
    count: { type: 'string', default: '1000000' },
    seed: { type: 'string', default: '1' },
    sent: { type: 'boolean', default: false },
  },
})
if (values.other === undefined) throw new Error('--other names another checkout')
const options = { count: Number(values.count), seed: Number(values.seed), isSentOnly: values.sent }
const checkouts = await Promise.all([checkoutAt('.'), checkoutAt(values.other)])
const report: Report = { messages: 0, mapped: 0, differences: new Map() }
compareTrials()
compareRandomSources()
await comparePresets()
const { differences, ...totals } = report
process.stdout.write(`${JSON.stringify(totals)}\n`)
for (const [name, { count, first }] of differences)
  process.stdout.write(`${name}: ${count} differ\n${first}\n`)
process.exitCode = differences.size > 0 || report.mapped === 0 ? 1 : 0

async function checkoutAt(folder: string): Promise<Checkout> {
  const load = (file: string): Promise<unknown> => import(join(resolve(folder), 'test', file))
  const world = (await load('support/mapping-world.ts')) as Pick<Checkout, 'openMapperOf'>
  const fuzz = (await load('mapping/fuzz.ts')) as Pick<Checkout, 'loadTrials'>
  return { ...world, ...fuzz }
}

function compareTrials(): void {
  for (const [index, trial] of trials.entries())
    compareTrial(trial, Math.ceil(options.count / trials.length), createRandom(options.seed * 1000 + index))
}

/** A trial has the name of the option that its sources were made for. */
function compareRandomSources(): void {
  const random = createRandom(options.seed)
  const sources = Math.max(settingsCount, Math.ceil(options.count / messagesOfRandomSource))
  for (let index = 0; index < sources; index += 1)
    compareTrial(randomTrial(index, random), messagesOfRandomSource, random)
}

function compareTrial(trial: Trial, count: number, random: Random): void {
  const { name, source, others = [] } = trial
  const sides = checkouts.map((checkout) => openSide(checkout, trial))
  const clock = { now: startMs }
  let last: Buffer = Buffer.alloc(0)
  const what = JSON.stringify([source, ...others]).slice(0, 3000)
  compare(sides, { name, what, count }, () => {
    clock.now += random.below(60_000)
    const whole = random.chance(0.02) ? last : hostileMessage(trial.template(clock, random), random)
    const bytes = random.chance(0.05) ? mutatedBytes(whole, last, random) : whole
    last = whole
    return { message: messageOf(bytes, trial, clock.now, random), isLive: random.chance(0.97) }
  })
}

/** All messages of their cases as they are, then mutated. */
async function comparePresets(): Promise<void> {
  const [mine = [], theirs = []] = await Promise.all(checkouts.map(({ loadTrials }) => loadTrials()))
  for (const [index, { preset, open, seeds }] of mine.entries()) {
    const other = theirs.find((one) => one.preset === preset)
    if (other === undefined || seeds.length === 0) continue
    const random = createRandom(options.seed * 1000 + index)
    const sides = [open, other.open].map((one) => ({ mapper: one(), told: [] }))
    let now = startMs
    let at = 0
    const count = seeds.length + Math.ceil(options.count / mine.length)
    compare(sides, { name: preset, what: `the preset ${preset}`, count }, () => {
      const seed = at < seeds.length ? seeds[at]! : random.pick(seeds)
      const bytes =
        at < seeds.length ? seed.bytes : mutatedBytes(seed.bytes, random.pick(seeds).bytes, random)
      at += 1
      now += random.below(2000)
      return { message: { ...seed, bytes, qos: 1, arrivedAt: now }, isLive: true }
    })
  }
}

function compare(
  sides: readonly Side[],
  { name, what, count }: { name: string; what: string; count: number },
  next: () => Next,
): void {
  for (let index = 0; index < count; index += 1) {
    const { message, isLive } = next()
    const [one = '', other = ''] = sides.map((side) => toldOf(side, copyOf(message), isLive))
    if (one.includes('"kind":"payloads"')) report.mapped += 1
    if (one !== other) note(name, message, `${near(one, other)}  of ${what}`)
    if (!options.isSentOnly && (index % countersEvery === 0 || index === count - 1)) {
      const [mine = '', theirs = ''] = sides.map(({ mapper }) => countersOf(mapper, message.arrivedAt))
      if (mine !== theirs) note(name, message, `${near(mine, theirs)}  of ${what}`)
    }
    report.messages += 1
  }
}

function openSide({ openMapperOf }: Checkout, { source, others = [], world }: Trial): Side {
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
  return { mapper: openMapperOf([source, ...others], { ...world, notes, counterReset }), told }
}

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
function toldOf({ mapper, told }: Side, message: Message, isLive: boolean): string {
  told.length = 0
  const { writes, ...result }: MapResult = mapper.map(message, isLive)
  const applied = result.kind === 'part' ? applyOf(result, mapper)() : null
  if (options.isSentOnly) {
    const { kind } = result
    const payloads = [...(kind === 'payloads' ? result.payloads : []), ...(applied?.payloads ?? [])]
    return JSON.stringify({ kind, reason: 'reason' in result ? result.reason : '', payloads })
  }
  const written = (writes ?? []).map(textOfWrite)
  const closed = applied && {
    payloads: applied.payloads,
    written: applied.writes.map(textOfWrite),
    unsent: applied.unsent.map(({ kind, reason }) => `${kind} ${reason}`),
  }
  // Entries of devices are large, and refer to themselves.
  const shown = 'records' in result ? { ...result, records: result.records.length } : result
  // In one order, which says nothing.
  const { kind, source, ...more } = shown
  return JSON.stringify({ kind, source, ...more, written, closed, told })
}

/** In checkouts of earlier builds the mapper has it. */
function applyOf(part: Extract<MapResult, { kind: 'part' }>, mapper: Mapper): () => StateChanges {
  return (part as Partial<typeof part>).apply ?? (mapper as Mapper & { apply: () => StateChanges }).apply
}

function textOfWrite({ key, value }: StateWrite): string {
  return `${key} ${value?.toString('hex')}`
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

function near(one: string, other: string): string {
  let at = 0
  while (at < one.length && one[at] === other[at]) at += 1
  const part = (text: string) => text.slice(Math.max(0, at - 60), at + 200)
  return `  this  ${part(one)}\n  other ${part(other)}\n`
}

function note(name: string, { topic, bytes }: Message, what: string): void {
  const found = report.differences.get(name)
  if (found !== undefined) {
    found.count += 1
    return
  }
  const shown = JSON.stringify(bytes.toString('latin1').slice(0, 1500))
  report.differences.set(name, { count: 1, first: `  ${topic}: ${shown}\n${what}` })
}
