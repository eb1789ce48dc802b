// preset-fit.ts: maps the samples of the traffic with a mapping, and rates how well it fits.

import type { Message } from '../domain/message.ts'
import type { MappedPayload } from '../domain/payload.ts'
import {
  compileSources,
  createMapper,
  openExplainer,
  unmappableReasons,
  type StateChanges,
  type MapResult,
} from '../mapping/mapping.ts'
import type { MappingConfig } from '../mapping/config.ts'
import { countValues, newCounts, shareOf } from './payload-values.ts'
import type { Fit, TopicShape } from './types.ts'

/** Stands for the names that the gateway sees when devices connect to it. */
const unknownSender = {
  clientId: '<client id>',
  userName: '<user name>',
  certificateName: '<certificate name>',
  identity: '<identity>',
}
const senderNames = Object.values(unknownSender)

const noDevices = { find: () => undefined, size: 0 }
const lastMax = 3
/** Rows of the proposed device table. */
const deviceNamesMax = 1000

/** Each preset is tried several times, on the topics that others left. */
const compiled = new WeakMap<MappingConfig, ReturnType<typeof compileSources>>()

function compiledOf(mapping: MappingConfig): ReturnType<typeof compileSources> {
  const known = compiled.get(mapping) ?? compileSources(mapping)
  compiled.set(mapping, known)
  return known
}

/** Null for a mapping with a problem. */
export function fitOf(mapping: MappingConfig, shapes: readonly TopicShape[]): Fit | null {
  const { sources, problems } = compiledOf(mapping)
  if (problems.length > 0) return null
  const clocks = { futureMaxMs: mapping.clocks.future_max, onFuture: 'accept' } as const
  const mapper = createMapper({ devices: noDevices, clockOffsetMs: () => 0 }, { sources, clocks })
  const found = new Map(
    shapes.map((shape) => [shape, { taken: 0, mapped: 0, last: null as MapResult | null }]),
  )
  const counts = createFitCounts()
  for (const { shape, message } of inOrder(shapes)) {
    const over = mapper.tick(message.arrivedAt)
    if (over) counts.apply(over)
    // The retain flag here may differ from that at the gateway, and a broker does not tell who sent a
    // message.
    const result = mapper.map({ ...message, retain: false, sender: unknownSender })
    const own = found.get(shape)
    if (!own || isForeign(result)) continue
    own.taken += 1
    own.last = result
    if (result.kind === 'payloads' || result.kind === 'part') own.mapped += 1
    counts.add(result)
    if (result.kind === 'part') counts.apply(result.apply())
  }
  for (;;) {
    const applied = mapper.tick(Number.POSITIVE_INFINITY)
    if (applied === null) break
    counts.apply(applied)
  }
  const { omitted, withoutModel, clocks: judged } = mapper.counters()
  const omittedBy = new Map<string, number>()
  for (const [key, count] of omitted) omittedBy.set(key.split('|').slice(-2).join(': '), count)
  const fits = [...found.values()]
  return {
    shapes: found,
    taken: fits.reduce((sum, { taken }) => sum + taken, 0),
    // Parts without a payload do not fit.
    mapped: counts.fieldCounts.payloads === 0 ? 0 : fits.reduce((sum, { mapped }) => sum + mapped, 0),
    ...counts.result(),
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

/** The first messages, and the last one, which is shown. */
function samplesOf({ samples, last }: TopicShape): readonly Message[] {
  return last === null || samples.includes(last) ? samples : [...samples, last]
}

function createFitCounts() {
  const fieldCounts = newCounts()
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
      deviceNames: [...devices].slice(0, deviceNamesMax),
      namedBySender: [...devices].some((device) => senderNames.some((name) => device.includes(name))),
      ignoredBy,
      refusedBy,
      refused,
      lastPayloads,
    }),
  }

  function add(result: MapResult): void {
    for (const one of result.rest ?? []) add(one)
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
    // A message that a rule of the source refuses was understood.
    if (Object.hasOwn(unmappableReasons, reason)) refused += count
    const before = refusedBy.get(reason)
    refusedBy.set(reason, { count: (before?.count ?? 0) + count, detail: before?.detail ?? detail })
  }

  function addPayloads(payloads: readonly MappedPayload[]): void {
    for (const payload of payloads) {
      devices.add(payload.device)
      countValues(fieldCounts, payload)
    }
    if (payloads.length > 0) lastPayloads = payloads.slice(-lastMax)
  }
}

/** Reasons why a message that was understood has no payload now, but may have one later. */
const temporaryReasons = ['no fix']

/** Messages that were understood and had no data to send yet. */
function waitingIn({ ignoredBy }: Fit): number {
  return temporaryReasons.reduce((sum, reason) => sum + (ignoredBy.get(reason) ?? 0), 0)
}

export function makesPayloads({ fieldCounts }: Fit): boolean {
  return fieldCounts.payloads > 0
}

/**
 * Whether a mapping without a payload yet reads the messages. That it finds no fix is not enough: it finds
 * none in messages of another form either.
 */
export async function readsWithoutFix(
  fit: Fit,
  mapping: MappingConfig,
  shapes: readonly TopicShape[],
): Promise<boolean> {
  if (makesPayloads(fit) || fit.refused > 0 || waitingIn(fit) * 2 < fit.taken) return false
  const { mapper, explain } = await openExplainer(mapping, { clockOffsetMs: () => 0, isRecorded: true })
  return inOrder(shapes).some(({ message }) => {
    const own = { ...message, retain: false, sender: unknownSender }
    const { records } = explain(own, mapper.map(own))
    return records.some(({ fields }) =>
      fields.some(({ option, path, raw }) => isTelling(option) && path !== null && raw !== undefined),
    )
  })
}

/** The time of a message shows little: many formats have the same key for it. */
function isTelling(option: string): boolean {
  return option === 'latitude' || option === 'longitude' || option.startsWith('signals[')
}

/** The mapped messages, weighted by the values found in them, less the refused ones. */
export function scoreOf(fit: Fit): number {
  const { mapped, refused, fieldCounts } = fit
  // Less than the smallest weight of a payload.
  const waiting = waitingIn(fit) / 100
  return (fieldCounts.payloads === 0 ? 0 : mapped * shareOf(fieldCounts)) + waiting - refused
}
