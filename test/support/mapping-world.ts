// mapping-world.ts: a mapper made from options of a source, and messages for it.

import { z } from 'zod'
import { defaultProvider, type ProviderName } from '../../src/domain/ids.ts'
import type { Message } from '../../src/domain/message.ts'
import type { MappedPayload } from '../../src/domain/payload.ts'
import { compileSources } from '../../src/mapping/compile/compile.ts'
import {
  clocksSchema,
  defaultsSchema,
  devicesSchema,
  plausibilitySchema,
  privacySchema,
  sourcesSchema,
} from '../../src/mapping/config.ts'
import { parseDevices } from '../../src/mapping/devices/device-table.ts'
import type { CounterReset } from '../../src/mapping/memory/counter-memory.ts'
import {
  createMapper,
  type DeviceNotes,
  type Mapper,
  type MapResult,
  type StateChanges,
} from '../../src/mapping/mapping.ts'

const configSchema = z.object({
  sources: sourcesSchema,
  devices: devicesSchema,
  defaults: defaultsSchema,
  clocks: clocksSchema,
  privacy: privacySchema,
  plausibility: plausibilitySchema,
})

export type World = {
  devices?: unknown
  defaults?: unknown
  clocks?: unknown
  privacy?: unknown
  plausibility?: unknown
  table?: string
  providers?: readonly string[]
  /** Without it the time of the gateway is unknown, and no device time counts as future. */
  clockOffsetMs?: number
  counterReset?: (reset: CounterReset) => void
  notes?: DeviceNotes
}

/** The sections as the config loader returns them. */
export function configOf(sources: readonly unknown[], world: World = {}) {
  const { devices, defaults, clocks, privacy, plausibility } = world
  return configSchema.parse({ sources, devices, defaults, clocks, privacy, plausibility })
}

export function openMapperOf(sources: readonly unknown[], world: World = {}): Mapper {
  const config = configOf(sources, world)
  const compiled = compileSources(config)
  if (compiled.problems.length > 0) throw new Error(JSON.stringify(compiled.problems))
  const providers = (world.providers ?? [defaultProvider]) as readonly ProviderName[]
  const { clockOffsetMs = null } = world
  const { table, problems } = parseDevices(Buffer.from(world.table ?? 'device\n'), providers)
  if (problems.length > 0) throw new Error(JSON.stringify(problems))
  const { future_max: futureMaxMs, on_future: onFuture } = config.clocks
  const clocks = world.clocks === undefined ? {} : { clocks: { futureMaxMs, onFuture } }
  const { counterReset = () => undefined } = world
  const { notes = null } = world
  const deps = { devices: table, clockOffsetMs: () => clockOffsetMs, counterReset, notes }
  return createMapper(deps, { ...compiled, providers, ...clocks })
}

/** A typical source; `map` adds and replaces fields. */
export function truckSource(map: Record<string, unknown> = {}, rest: Record<string, unknown> = {}) {
  return {
    name: 'trucks',
    topic: 'telemetry/v1/{device}',
    ...rest,
    map: {
      time: { path: 'ts', format: 'ms' },
      latitude: { path: 'lat' },
      longitude: { path: 'lon' },
      ...map,
    },
  }
}

export const sender = { clientId: 'client-1', userName: null, certificateName: null, identity: null }

export function messageOf(payload: unknown, rest: Partial<Message> = {}): Message {
  const text = typeof payload === 'string' ? payload : JSON.stringify(payload)
  return {
    topic: 'telemetry/v1/truck-7',
    bytes: Buffer.isBuffer(payload) ? payload : Buffer.from(text),
    qos: 1,
    retain: false,
    dup: false,
    sender,
    arrivedAt: 1_760_000_000_000,
    ...rest,
  }
}

export function payloadsIn(result: MapResult): readonly MappedPayload[] {
  if (result.kind !== 'payloads') throw new Error(`no payloads but ${JSON.stringify(result)}`)
  return result.payloads
}

/** What a message adds to what is collected. */
export function appliedOf(result: MapResult): StateChanges {
  if (result.kind !== 'part') throw new Error(`no part but ${JSON.stringify(result)}`)
  return result.apply()
}

/** The only payload of a message. */
export function payloadIn(result: MapResult): MappedPayload {
  const [payload, ...more] = payloadsIn(result)
  if (!payload || more.length > 0) throw new Error('not one payload')
  return payload
}

export type Sent = {
  payloadId: string
  carrier?: string
  signalTimestamp: number
  assetIdentifier?: Record<string, string>
  deviceIdentifier?: Record<string, string>
  gps?: Record<string, unknown>
  signals?: { id: string; type: string; value: string; valueUnit?: string; assetPart?: string }[]
}

/** The only payload of a message, parsed from its JSON. */
export function sentIn(result: MapResult): Sent {
  return JSON.parse(payloadIn(result).json) as Sent
}

/** `NO_TIME` of an unmappable message, `when: ...` of an ignored one, `payloads` of a mapped one. */
export function verdictOf(result: MapResult): string {
  return 'reason' in result ? result.reason : result.kind
}
