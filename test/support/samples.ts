// samples.ts: recorded messages of many formats with their expected results. Third-party data: read from the
// folder in TELEMETRY_TEST_DATA, never copied. Its README describes the files.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Message } from '../../src/domain/message.ts'
import type { MappedPayload } from '../../src/domain/payload.ts'
import { mappingSchema } from '../../src/config/sources-section.ts'
import { replayMessages } from '../../src/mapping/cases/cases.ts'
import { compileSources } from '../../src/mapping/compile/compile.ts'
import type { MappingConfig } from '../../src/mapping/config.ts'
import { noDevices } from '../../src/mapping/devices/device-table.ts'
import { createMapper } from '../../src/mapping/mapper.ts'
import type { Mapper } from '../../src/mapping/mapper.ts'
import { loadPresetMapping } from './preset-mapping.ts'

const dataFolder = process.env['TELEMETRY_TEST_DATA']
export const samplesFolder = dataFolder === undefined ? '' : join(dataFolder, 'samples')
export const haveSamples = samplesFolder !== '' && existsSync(samplesFolder)

type Signal = { type: string; value: string; valueUnit?: string; assetPart?: string }

export type ExpectedEntry = {
  device: string
  signalTimestamp: number | null
  gps?: Record<string, unknown>
  signals?: Signal[]
  /** Sent only when `origins` of the source names their origin. */
  signalsOptIn?: Signal[]
  /** The last known position, not the current one. */
  gpsStale?: boolean
  duplicateCopies?: number
}

export type Sample = {
  folder: string
  /** `teltonika-json/3`. */
  name: string
  messages: Message[]
  expect: ExpectedEntry[]
}

type Line = { dtMs: number; topic: string; payload: string; retain?: boolean }

/** Later than every time in the samples, except the intentionally wrong ones. */
export const arrivedAt = Date.UTC(2027, 0, 1)

/** Devices that are named by their connection. */
const sender = { clientId: 'client-7', userName: 'token-7', certificateName: null, identity: null }
const bySender: Record<string, string> = {
  '(mqtt client id)': sender.clientId,
  '(mqtt client username/token)': sender.userName,
}

export function samplesIn(folder: string): Sample[] {
  return readdirSync(join(samplesFolder, folder))
    .filter((file) => file.endsWith('.expect.json'))
    .map((file) => readSample(folder, basename(file, '.expect.json')))
    .sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }))
}

export function sampleFolders(): string[] {
  return readdirSync(samplesFolder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
}

function readSample(folder: string, name: string): Sample {
  const path = (end: string) => join(samplesFolder, folder, `${name}.${end}`)
  const { expect, retain } = JSON.parse(readFileSync(path('expect.json'), 'utf8')) as {
    expect: ExpectedEntry[]
    retain: boolean
  }
  const named = expect.map((entry) => ({ ...entry, device: bySender[entry.device] ?? entry.device }))
  const rest = { qos: 1 as const, dup: false, sender }
  const sample = { folder, name: `${folder}/${name}`, expect: named }
  if (existsSync(path('seq.ndjson'))) {
    const lines = readFileSync(path('seq.ndjson'), 'utf8').split('\n')
    const messages = lines
      .filter((line) => line.trim() !== '')
      .map((line) => JSON.parse(line) as Line)
      .map((line) => ({
        ...rest,
        topic: line.topic,
        bytes: Buffer.from(line.payload),
        retain: line.retain ?? false,
        arrivedAt: arrivedAt + line.dtMs,
      }))
    return { ...sample, messages }
  }
  const end = ['json', 'bin', 'txt'].find((one) => existsSync(path(one)))
  if (end === undefined) throw new Error(`${sample.name} has no message`)
  const topic = readFileSync(path('topic'), 'utf8').replace(/\r?\n$/, '')
  const message = { ...rest, topic, bytes: readFileSync(path(end)), retain, arrivedAt }
  const copies = Math.max(1, ...expect.map(({ duplicateCopies = 1 }) => duplicateCopies))
  return { ...sample, messages: Array.from({ length: copies }, () => message) }
}

const deps = { env: {}, readText: (path: string) => readFile(path, 'utf8') }

/** A mapper of a packaged preset; `own` are options of the source that override it. */
export async function openPreset(preset: string, own: Record<string, unknown> = {}): Promise<Mapper> {
  return mapperOf(await loadPresetMapping(preset, deps, own))
}

/** The origins of the signals of a preset. */
export async function originsOf(preset: string): Promise<string[]> {
  const { sources } = await loadPresetMapping(preset, deps)
  return [...new Set(sources.flatMap(({ map }) => map.signals.flatMap(({ origin = [] }) => origin)))]
}

/** A mapper of a source that is written in a test. */
export function openSource(source: Record<string, unknown>): Mapper {
  return mapperOf(mappingSchema.parse({ sources: [source] }))
}

function mapperOf(mapping: MappingConfig): Mapper {
  const { sources, problems } = compileSources(mapping)
  if (problems.length > 0) throw new Error(JSON.stringify(problems))
  const { future_max: futureMaxMs, on_future: onFuture } = mapping.clocks
  const clocks = { futureMaxMs, onFuture }
  return createMapper({ devices: noDevices, clockOffsetMs: () => 0 }, { sources, clocks })
}

type Part = { device: string; signalTimestamp: number | null; gps?: unknown; signals?: unknown[] }

/** The payloads without duplicates, in the form of the samples; and the reasons for messages without one. */
export function outcomeOf(mapper: Mapper, { messages }: Sample): { payloads: Part[]; reasons: string[] } {
  const { payloads, ignored, refused, quarantined } = replayMessages(mapper, messages)
  const seen = new Set<string>()
  const distinct = payloads.filter(({ duplicateRule, windowKey }) => {
    const copy = duplicateRule === 'always' && seen.has(windowKey)
    seen.add(windowKey)
    return !copy
  })
  const reasons = [...refused, ...quarantined].map(({ reason, detail }) => `${reason}: ${detail}`)
  return { payloads: distinct.map(partOf), reasons: [...ignored, ...reasons] }
}

function partOf({ device, deviceTime, json }: MappedPayload): Part {
  const body = JSON.parse(json) as { signalTimestamp: number; gps?: object; signals?: object[] }
  if (deviceTime !== null && deviceTime !== body.signalTimestamp) throw new Error('two times')
  const signals = body.signals?.map((signal) =>
    Object.fromEntries(Object.entries(signal).filter(([key]) => key !== 'id')),
  )
  return {
    device,
    signalTimestamp: deviceTime,
    ...(body.gps ? { gps: body.gps } : {}),
    ...(signals ? { signals } : {}),
  }
}

/** The expectation in the same form; null when nothing is sent. */
export function expectedPart(
  { device, signalTimestamp, gps, signals, signalsOptIn, gpsStale }: ExpectedEntry,
  { keep = false, optIn = false } = {},
): Part | null {
  const all = [...(signals ?? []), ...(optIn ? (signalsOptIn ?? []) : [])]
  const sent = gps !== undefined && (keep || !gpsStale)
  if (!sent && all.length === 0) return null
  return {
    device,
    signalTimestamp,
    ...(sent ? { gps } : {}),
    ...(all.length > 0 ? { signals: all } : {}),
  }
}
