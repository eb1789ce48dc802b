// mapping.ts: what declaring a mapping costs against writing it by hand, in this process and without sockets, and what
// the presets cost against the plain source of the example config.

import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { loadPresetCases } from '../../../src/config/case-files.ts'
import type { Message } from '../../../src/domain/message.ts'
import { replayMessages } from '../../../src/mapping/cases/cases.ts'
import type { CasesFile } from '../../../src/mapping/mapping.ts'
import { openMapping, type Mapper } from '../../../src/mapping/mapping.ts'
import { figureOf, median, rounded } from '../bench.ts'
import type { BenchOptions, Figure } from '../bench.ts'
import { mapByHand } from '../hand-written.ts'
import { openTrucks, timeOf, truckMessages } from '../trucks.ts'

const presets = resolve(import.meta.dirname, '../../../config/presets')
const rounds = 9
const messagesARound = 20_000

export async function measureMapping({ scale }: BenchOptions): Promise<Figure[]> {
  const mapper = await openTrucks()
  const messages = truckMessages(Math.max(1000, Math.round(messagesARound * scale)))
  sameByHand(mapper, messages)
  const declared: number[] = []
  const handWritten: number[] = []
  const play = (run: () => void, times: number[]) => void times.push(timeOf(run))
  for (let round = -2; round < rounds; round += 1) {
    // The first rounds warm up.
    play(() => messages.forEach(mapByHand), round < 0 ? [] : handWritten)
    play(() => messages.forEach((message) => mapper.map(message)), round < 0 ? [] : declared)
  }
  const value = median(handWritten) / median(declared)
  const perS = (messages.length / median(declared)) * 1000
  const rates = await presetRates(scale)
  const worst = rates.reduce((least, one) => (one.perS < least.perS ? one : least))
  return [
    figureOf({
      figure: 'mapping',
      value,
      unit: 'share of the speed of a hand-written function',
      atLeast: 0.6,
      detail: {
        messagesARound: messages.length,
        declaredPerS: Math.round(perS),
        handWrittenPerS: Math.round((messages.length / median(handWritten)) * 1000),
        presets: {
          target: '>= 0.3 of declaredPerS, messages of its cases that make payloads',
          reached: worst.perS >= 0.3 * perS,
          worst: worst.preset,
          worstShare: rounded(worst.perS / perS),
          all: rates.map((one) => ({
            ...one,
            perS: Math.round(one.perS),
            share: rounded(one.perS / perS),
          })),
        },
      },
    }),
  ]
}

/** Both must do the same work: every payload with its ids is the same, byte for byte. */
function sameByHand(mapper: Mapper, messages: readonly Message[]): void {
  for (const message of messages) {
    const result = mapper.map(message)
    const [payload] = result.kind === 'payloads' ? result.payloads : []
    const byHand = mapByHand(message)
    if (payload?.json !== byHand.json || payload.windowKey !== byHand.windowKey)
      throw new Error(`by hand ${byHand.json}, declared ${payload?.json ?? result.kind}`)
  }
}

/** 82 objects of which nothing is read; a message has 2 KB with them, and 85 objects. */
const unread = Object.fromEntries(
  Array.from({ length: 81 }, (_, index) => [`i${index}`, { v: 100 + index, q: 1 }]),
)

/** Sources that are dear: much that is not read, and more devices than caches hold. */
const shapes = [
  { figure: 'mapping_2kb', usMax: 7, count: 20_000, devices: 500, more: { io: unread } },
  { figure: 'mapping_topics', usMax: 8, count: 200_000, devices: 100_000, more: {} },
]

export async function measureMappingShapes({ scale }: BenchOptions): Promise<Figure[]> {
  const figures: Figure[] = []
  for (const { figure, usMax, count, devices, more } of shapes) {
    const mapper = await openTrucks()
    const size = Math.max(1000, Math.round(count * scale))
    const times = { mapped: [] as number[], json: [] as number[] }
    for (let round = -2; round < 5; round += 1) {
      const messages = truckMessages(size, (round + 2) * size, devices, more)
      const mappedMs = timeOf(() => messages.forEach((message) => mapper.map(message)))
      const jsonMs = timeOf(() => messages.forEach(({ bytes }) => JSON.parse(bytes.toString())))
      if (round < 0) continue
      times.mapped.push(mappedMs)
      times.json.push(jsonMs)
    }
    const us = (all: readonly number[]) => rounded((median(all) * 1000) / size, 2)
    const [message] = truckMessages(1, 0, devices, more)
    figures.push(
      figureOf({
        figure,
        value: us(times.mapped),
        unit: 'us a message, mapping alone',
        atMost: usMax,
        detail: {
          bytes: message?.bytes.length,
          devices,
          /** Of its text and JSON.parse alone: tells machines apart. */
          jsonParseUs: us(times.json),
        },
      }),
    )
  }
  return figures
}

type Rate = { preset: string; perS: number; payloadsAMessage: number; bytesAMessage: number }

/** Of each preset: all messages of cases that make payloads, over and over, with windows closed after each case. */
async function presetRates(scale: number): Promise<Rate[]> {
  const deps = { env: {}, readText: (path: string) => readFile(path, 'utf8') }
  const rates: Rate[] = []
  for (const file of readdirSync(presets).filter((name) => /^[^.]+\.cases\.yaml$/.test(name))) {
    const { cases, mapping } = await loadPresetCases(join(presets, file), deps)
    const plays = playsOf(cases)
    const count = plays.reduce((sum, one) => sum + one.length, 0)
    if (count === 0) continue
    const repeats = Math.max(1, Math.round((5000 * scale) / count))
    // The devices send the times of their cases, which fall behind the arrivals.
    const clocks = { ...mapping.clocks, past_max: Number.POSITIVE_INFINITY }
    const mapper = (await openMapping({ ...mapping, clocks }, { clockOffsetMs: () => 0 })).open()
    let shiftMs = 0
    let payloads = 0
    const run = () => {
      payloads = 0
      for (let repeat = 0; repeat < repeats; repeat += 1) {
        // Later each time, so that nothing is thinned.
        shiftMs += 3_600_000
        for (const one of plays)
          payloads += replayMessages(
            mapper,
            one.map((message) => ({ ...message, arrivedAt: message.arrivedAt + shiftMs })),
          ).payloads.length
      }
    }
    // Compiled code needs its time to get warm, as it has in a daemon.
    for (let warmUp = 0; warmUp < 3; warmUp += 1) run()
    const tookMs = median(Array.from({ length: 5 }, () => timeOf(run)))
    const bytes = plays.flat().reduce((sum, message) => sum + message.bytes.length, 0)
    rates.push({
      preset: file.replace('.cases.yaml', ''),
      perS: (count * repeats * 1000) / tookMs,
      payloadsAMessage: rounded(payloads / repeats / count, 2),
      bytesAMessage: Math.round(bytes / count),
    })
  }
  return rates
}

function playsOf({ cases }: CasesFile): Message[][] {
  return cases
    .filter(({ payloads }) => payloads !== undefined)
    .map((one) => {
      const sender = {
        clientId: one.client,
        userName: one.user ?? null,
        certificateName: null,
        identity: null,
      }
      return (one.messages ?? [one]).map(({ topic = '', message, hex, retain, dup }) => {
        const bytes = hex === undefined ? Buffer.from(message ?? '') : Buffer.from(hex, 'hex')
        return { topic, bytes, qos: 1, retain, dup, sender, arrivedAt: Date.UTC(2026, 1, 1) }
      })
    })
}
