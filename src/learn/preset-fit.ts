// preset-fit.ts: maps the samples of the traffic with a mapping, and rates how well it fits.

import type { Message } from '../domain/message.ts'
import {
  compileSources,
  createMapper,
  openExplainer,
  outcomesOf,
  outcomesOfChanges,
  type MapResult,
} from '../mapping/mapping.ts'
import type { MappingConfig } from '../mapping/config.ts'
import { Fit, unknownSender, shareOf } from './fit.ts'
import type { TopicShape } from './topic-shapes.ts'

const noDevices = { find: () => undefined, size: 0 }
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
  const fit = new Fit(shapes)
  for (const { shape, message } of inOrder(shapes)) {
    const over = mapper.tick(message.arrivedAt)
    if (over) fit.add(outcomesOfChanges(over))
    // The retain flag here may differ from that at the gateway, and a broker does not tell who sent a
    // message.
    const result = mapper.map({ ...message, retain: false, sender: unknownSender })
    const own = fit.shapes.get(shape)
    if (!own || isForeign(result)) continue
    own.taken += 1
    own.last = result
    if (result.kind === 'payloads' || result.kind === 'part') own.mapped += 1
    fit.add(outcomesOf(result))
  }
  for (let over = mapper.tick(Infinity); over !== null; over = mapper.tick(Infinity))
    fit.add(outcomesOfChanges(over))
  const { omitted, withoutModel, clocks: judged } = mapper.counters()
  for (const [key, count] of omitted) fit.omittedBy.set(key.split('|').slice(-2).join(': '), count)
  fit.withoutModel = [...withoutModel.values()][0]?.what ?? null
  return Object.assign(fit, { future: judged.future, unset: judged.unset })
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
