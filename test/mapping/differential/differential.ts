// differential.ts: maps hostile messages with the mapping of this checkout and with that of another one, and compares
// what can be observed: results, writes of the memory, notes, counters. Nothing of it may differ after a change of
// the inside of the mapping, except what the change is about.
//
//   git worktree add --detach /tmp/before main
//   node test/mapping/differential/differential.ts --other /tmp/before --count 1000000 --seed 1
//
// The sources are random ones with any options of fields (any-fields.ts), those of word-trials.ts, and all presets
// with the messages of their cases. `--sent` compares payloads and reasons alone.

import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { array, sample, tuple } from 'fast-check'
import type { Message } from '../../../src/domain/message.ts'
import type { Mapper, MapResult, NotedDevice, StateWrite } from '../../../src/mapping/mapping.ts'
import { messageOf, truckSource } from '../../support/mapping-world.ts'
import { mutatedBytes } from '../../support/mutate.ts'
import { createRandom, type Random } from '../../support/random.ts'
import { anyMap, anyMessage, soundConfigOf } from '../fields/any-fields.ts'
import type { Trial } from '../fuzz.ts'

/** What a checkout has for this. */
type Checkout = {
  openMapperOf: typeof import('../../support/mapping-world.ts').openMapperOf
  trials: readonly Trial[]
}

/** A mapper, and what it told others since the last message. */
type Side = { mapper: Mapper; told: string[] }

type Next = { message: Message; isLive: boolean }

const startMs = Date.UTC(2026, 0, 31, 23, 26, 40)
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
const count = Number(values.count)
const seed = Number(values.seed)
const checkouts = await Promise.all([checkoutAt('.'), checkoutAt(values.other)])
const totals = { messages: 0, mapped: 0 }
/** By trial: how many messages differ, and the first of them. */
const differences = new Map<string, { count: number; first: string }>()
compareRandomSources()
compareTrials()
process.stdout.write(`${JSON.stringify(totals)}\n`)
for (const [name, { count: many, first }] of differences)
  process.stdout.write(`${name}: ${many} differ\n${first}\n`)
process.exitCode = differences.size > 0 || totals.mapped === 0 ? 1 : 0

async function checkoutAt(folder: string): Promise<Checkout> {
  const load = (file: string): Promise<unknown> => import(join(resolve(folder), 'test', file))
  const { openMapperOf } = (await load('support/mapping-world.ts')) as Pick<Checkout, 'openMapperOf'>
  const { loadTrials } = (await load('mapping/fuzz.ts')) as typeof import('../fuzz.ts')
  const { wordTrials } = (await load('mapping/word-trials.ts')) as typeof import('../word-trials.ts')
  return { openMapperOf, trials: [...(await loadTrials()), ...wordTrials] }
}

function compareRandomSources(): void {
  const random = createRandom(seed)
  const any = tuple(anyMap, array(anyMessage, { minLength: 2, maxLength: 5 }))
  const numRuns = Math.ceil(count / messagesOfRandomSource)
  for (const [map, contents] of sample(any, { numRuns, seed })) {
    const source = truckSource(map)
    if (soundConfigOf(source) === null) continue
    const name = Object.keys(map).join(' ')
    const seeds = contents.map((content) => messageOf({ ts: startMs, lat: 52.5, lon: 13.4, ...content }))
    const sides = checkouts.map((checkout) => openSide(checkout, source))
    compare(sides, { name, what: JSON.stringify(source), count: messagesOfRandomSource }, (now) =>
      nextOf(seeds, now, random),
    )
  }
}

/** All messages of the presets' cases as they are, then mutated. */
function compareTrials(): void {
  const [mine, theirs] = checkouts.map(({ trials }) => trials)
  for (const [index, { preset, open, seeds }] of (mine ?? []).entries()) {
    const other = theirs?.find((one) => one.preset === preset)
    if (other === undefined || seeds.length === 0) continue
    const random = createRandom(seed * 1000 + index)
    const sides = [open, other.open].map((one) => ({ mapper: one(), told: [] }))
    const unchanged = [...seeds]
    const whole = { name: preset, what: `the source ${preset}`, count: seeds.length + count / mine!.length }
    compare(sides, whole, (now) => {
      const first = unchanged.shift()
      return first === undefined
        ? nextOf(seeds, now, random)
        : { message: { ...first, qos: 1, arrivedAt: now }, isLive: true }
    })
  }
}

/** One of the messages, mostly mutated; some are resent, retained or wills, or had been stored by a server. */
function nextOf(seeds: Trial['seeds'], now: number, random: Random): Next {
  const one = random.pick(seeds)
  const bytes = random.chance(0.2) ? one.bytes : mutatedBytes(one.bytes, random.pick(seeds).bytes, random)
  const message: Message = {
    ...one,
    bytes,
    qos: 1,
    arrivedAt: now + random.below(2000),
    serial: random.below(3),
    ...(random.chance(0.02) && { dup: true, retain: random.chance(0.5), will: random.chance(0.5) }),
    ...(random.chance(0.1) && { userProperties: { tenant: random.pick(['a', '']) } }),
    ...(random.chance(0.02) && { stored: { at: now - 5000, serial: random.below(2) } }),
  }
  return { message, isLive: random.chance(0.97) }
}

function compare(
  sides: readonly Side[],
  one: { name: string; what: string; count: number },
  next: (now: number) => Next,
): void {
  for (let index = 0; index < one.count; index += 1) {
    const { message, isLive } = next(startMs + index * 1000)
    const [mine = '', theirs = ''] = sides.map((side) => toldOf(side, copyOf(message), isLive))
    if (mine.includes('"kind":"payloads"')) totals.mapped += 1
    if (mine !== theirs) note(one, message, near(mine, theirs))
    totals.messages += 1
    if (values.sent || (index % countersEvery !== 0 && index + 1 < one.count)) continue
    const [counted = '', other = ''] = sides.map(({ mapper }) => countersOf(mapper, message.arrivedAt))
    if (counted !== other) note(one, message, near(counted, other))
  }
}

function openSide({ openMapperOf }: Checkout, source: unknown): Side {
  const told: string[] = []
  const tell =
    (what: string) =>
    (entry: NotedDevice, ...rest: unknown[]) =>
      void told.push(
        `${what} ${entry.provider} ${entry.device} ${entry.listed} ${rest.map(wordOf).join(' ')}`,
      )
  const notes = {
    begin: ({ topic }: Message) => void told.push(`begin ${topic}`),
    heard: tell('heard'),
    read: tell('read'),
    readPosition: tell('position'),
    ended: tell('ended'),
    lost: tell('lost'),
    unnamed: () => undefined,
  }
  const counterReset = (reset: unknown) => void told.push(`reset ${JSON.stringify(reset)}`)
  return { mapper: openMapperOf([source], { clockOffsetMs: 0, notes, counterReset }), told }
}

/** A place is part of a record, which refers to itself. */
function wordOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value)
  const { latitude, longitude } = value as { latitude?: number; longitude?: number }
  return `${latitude} ${longitude}`
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
  const applied = result.kind === 'part' ? mapper.apply() : null
  if (values.sent) {
    const { kind } = result
    const payloads = [...(kind === 'payloads' ? result.payloads : []), ...(applied?.payloads ?? [])]
    return JSON.stringify({ kind, reason: 'reason' in result ? result.reason : '', payloads })
  }
  const closed = applied && {
    payloads: applied.payloads,
    written: applied.writes.map(textOfWrite),
    unsent: applied.unsent.map(({ kind, reason }) => `${kind} ${reason}`),
  }
  // Entries of devices are large, and refer to themselves.
  const shown = 'records' in result ? { ...result, records: result.records.length } : result
  return JSON.stringify({ ...shown, written: (writes ?? []).map(textOfWrite), closed, told })
}

function textOfWrite({ key, value }: StateWrite): string {
  return `${key} ${value?.toString('hex')}`
}

function countersOf(mapper: Mapper, now: number): string {
  const all = {
    counters: mapper.counters(),
    clocks: [...mapper.deviceClocks()],
    skew: mapper.commonClockSkew(now),
    suspects: mapper.suspects(now),
    withheld: [...mapper.deviceClocks()].map(([device]) => mapper.withheldOf(device)),
    entries: [...mapper.entries()].map(([key, value]) => textOfWrite({ key, value })),
  }
  return JSON.stringify(all, (_key, value: unknown) => (value instanceof Map ? [...value] : value))
}

function near(one: string, other: string): string {
  let at = 0
  while (at < one.length && one[at] === other[at]) at += 1
  const part = (text: string) => text.slice(Math.max(0, at - 60), at + 200)
  return `  this  ${part(one)}\n  other ${part(other)}\n`
}

function note(
  { name, what }: { name: string; what: string },
  { topic, bytes }: Message,
  where: string,
): void {
  const found = differences.get(name)
  if (found !== undefined) {
    found.count += 1
    return
  }
  const shown = JSON.stringify(bytes.toString('latin1').slice(0, 1500))
  differences.set(name, { count: 1, first: `  ${topic}: ${shown}\n${where}  of ${what.slice(0, 3000)}` })
}
