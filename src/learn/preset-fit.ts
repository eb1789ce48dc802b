// preset-fit.ts: how well a mapping fits what was heard: it is tried, by the mapper itself.

import type { Message } from '../domain/message.ts'
import type { MappedPayload } from '../domain/payload.ts'
import {
  compileSources,
  createMapper,
  unmappableReasons,
  type StateChanges,
  type MapResult,
} from '../mapping/mapping.ts'
import type { MappingConfig } from '../mapping/config.ts'
import type { TopicShape } from './topic-shapes.ts'

/** What the payloads say; each counts those that do. */
export type FieldCounts = {
  payloads: number
  position: number
  ownTime: number
  speed: number
  heading: number
  motion: number
  odometer: number
  hours: number
}

export type Counts = ReadonlyMap<string, number>

/** What became of the samples of one shape. */
export type ShapeFit = {
  /** Samples that the topics of the mapping match. */
  taken: number
  /** Became payloads, or a part of one. */
  mapped: number
  /** What became of the last one. */
  last: MapResult | null
}

export type Fit = {
  shapes: ReadonlyMap<TopicShape, ShapeFit>
  taken: number
  mapped: number
  /** Could not be understood. */
  refused: number
  fieldCounts: FieldCounts
  devices: number
  /** Devices are named by who connects, which a subscriber does not see. */
  namedBySender: boolean
  ignoredBy: Counts
  /** With the detail of the first of each reason. */
  refusedBy: ReadonlyMap<string, { count: number; detail: string }>
  /** Fields left out: `field: why`. */
  omittedBy: Counts
  /** What devices without a known model miss; null where nothing is missed. */
  withoutModel: string | null
  future: number
  unset: number
  /** The last payloads, for people. */
  lastPayloads: readonly MappedPayload[]
}

type Body = { gps?: Record<string, unknown>; signals?: { type: string }[] }

/** In the place of the names that the gateway will see where devices connect to it. */
const unknownSender = {
  clientId: '<client id>',
  userName: '<user name>',
  certificateName: '<certificate name>',
}
const senderNames = Object.values(unknownSender)

const noDevices = { find: () => undefined, size: 0 }
const lastMax = 3

/** Null where the mapping has a problem. */
export function fitOf(mapping: MappingConfig, shapes: readonly TopicShape[]): Fit | null {
  const { sources, problems } = compileSources(mapping)
  if (problems.length > 0) return null
  const clocks = { futureMaxMs: mapping.clocks.future_max, onFuture: 'accept' } as const
  const mapper = createMapper({ devices: noDevices, clockOffsetMs: () => 0 }, { sources, clocks })
  const found = new Map(
    shapes.map((shape) => [shape, { taken: 0, mapped: 0, last: null as MapResult | null }]),
  )
  const tally = createTally()
  for (const { shape, message } of inOrder(shapes)) {
    const over = mapper.tick(message.arrivedAt)
    if (over) tally.apply(over)
    // Whether it is retained says how it came here, not how it will come to the gateway; and who sent it a broker
    // tells nobody.
    const result = mapper.map({ ...message, retain: false, sender: unknownSender })
    const own = found.get(shape)
    if (!own || isForeign(result)) continue
    own.taken += 1
    own.last = result
    if (result.kind === 'payloads' || result.kind === 'part' || result.kind === 'deferred') own.mapped += 1
    tally.add(result)
    if (result.kind === 'part') tally.apply(mapper.apply())
  }
  for (;;) {
    const applied = mapper.tick(Number.POSITIVE_INFINITY)
    if (applied === null) break
    tally.apply(applied)
  }
  const { omitted, withoutModel, clocks: judged } = mapper.counters()
  const omittedBy = new Map<string, number>()
  for (const [key, count] of omitted) omittedBy.set(key.split('|').slice(-2).join(': '), count)
  const fits = [...found.values()]
  return {
    shapes: found,
    taken: fits.reduce((sum, { taken }) => sum + taken, 0),
    // Parts that never became a payload fit nothing.
    mapped: tally.fieldCounts.payloads === 0 ? 0 : fits.reduce((sum, { mapped }) => sum + mapped, 0),
    ...tally.result(),
    omittedBy,
    withoutModel: [...withoutModel.values()][0]?.what ?? null,
    future: judged.future,
    unset: judged.unset,
  }
}

function isForeign(result: MapResult): boolean {
  return result.kind === 'unmappable' && result.reason === 'NO_SOURCE'
}

function inOrder(shapes: readonly TopicShape[]): { shape: TopicShape; message: Message }[] {
  return shapes
    .flatMap((shape) => samplesOf(shape).map((message) => ({ shape, message })))
    .sort((a, b) => a.message.arrivedAt - b.message.arrivedAt)
}

/** The first ones, and the last one, which is shown. */
function samplesOf({ samples, last }: TopicShape): readonly Message[] {
  return last === null || samples.includes(last) ? samples : [...samples, last]
}

function createTally() {
  const fieldCounts: FieldCounts = {
    payloads: 0,
    position: 0,
    ownTime: 0,
    speed: 0,
    heading: 0,
    motion: 0,
    odometer: 0,
    hours: 0,
  }
  const devices = new Set<string>()
  const ignoredBy = new Map<string, number>()
  const refusedBy = new Map<string, { count: number; detail: string }>()
  let lastPayloads: MappedPayload[] = []
  let refused = 0
  return {
    fieldCounts,
    add,
    apply,
    result: () => ({
      fieldCounts,
      devices: devices.size,
      namedBySender: [...devices].some((device) => senderNames.some((name) => device.includes(name))),
      ignoredBy,
      refusedBy,
      refused,
      lastPayloads,
    }),
  }

  function add(result: MapResult): void {
    if (result.kind === 'payloads') addPayloads(result.payloads)
    else if (result.kind === 'ignored') ignore(result.reason, 1)
    else if (result.kind === 'unmappable') refuse(result.reason, result.detail, 1)
  }

  function apply({ payloads, unsent }: StateChanges): void {
    addPayloads(payloads)
    for (const one of unsent)
      if (one.kind === 'ignored') ignore(one.reason, one.messages)
      else refuse(one.reason, one.detail, one.messages)
  }

  function ignore(reason: string, count: number): void {
    ignoredBy.set(reason, (ignoredBy.get(reason) ?? 0) + count)
  }

  function refuse(reason: string, detail: string, count: number): void {
    // What a source refuses by a rule of its own, it has understood.
    if (Object.hasOwn(unmappableReasons, reason)) refused += count
    const before = refusedBy.get(reason)
    refusedBy.set(reason, { count: (before?.count ?? 0) + count, detail: before?.detail ?? detail })
  }

  function addPayloads(payloads: readonly MappedPayload[]): void {
    for (const payload of payloads) {
      devices.add(payload.device)
      addFieldCounts(fieldCounts, payload)
    }
    if (payloads.length > 0) lastPayloads = payloads.slice(-lastMax)
  }
}

function addFieldCounts(fieldCounts: FieldCounts, { json, deviceTime }: MappedPayload): void {
  const { gps, signals = [] } = JSON.parse(json) as Body
  fieldCounts.payloads += 1
  if (deviceTime !== null) fieldCounts.ownTime += 1
  if (gps) fieldCounts.position += 1
  if (gps?.['speed'] !== undefined) fieldCounts.speed += 1
  if (gps?.['heading'] !== undefined) fieldCounts.heading += 1
  if (gps?.['inMotion'] !== undefined) fieldCounts.motion += 1
  if (signals.some(({ type }) => type === 'OBD_LIFETIME_ODOMETER')) fieldCounts.odometer += 1
  if (signals.some(({ type }) => type === 'OBD_TOTAL_ENGINE_TIME')) fieldCounts.hours += 1
}

/** Reasons for which a message that was understood makes no payload today, and one tomorrow. */
const forNow = ['no fix', 'incomplete', 'thinned']

/** Messages that were understood and had nothing to send. */
function waitingIn({ ignoredBy }: Fit): number {
  return forNow.reduce((sum, reason) => sum + (ignoredBy.get(reason) ?? 0), 0)
}

export function isPromising(fit: Fit): boolean {
  return fit.fieldCounts.payloads > 0 || waitingIn(fit) > 0
}

/** What was mapped, by how much of it was understood, less what was refused. */
export function scoreOf(fit: Fit): number {
  const { mapped, refused, fieldCounts } = fit
  const { payloads, position, ownTime, speed, heading, motion, odometer, hours } = fieldCounts
  // A tenth of the least that a payload is worth.
  const waiting = waitingIn(fit) / 100
  if (payloads === 0) return waiting - refused
  const understood = 2 * position + 2 * ownTime + speed + heading + motion + odometer + hours
  return mapped * (understood / (payloads * 9)) + waiting - refused
}
