// fit.ts: what a mapping made of the samples of the traffic.

import type { MappedPayload } from '../domain/payload.ts'
import { unmappableReasons, type MapResult, type Outcome } from '../mapping/mapping.ts'
import type { TopicShape } from './topic-shapes.ts'

/** The results of the samples of one shape. */
type ShapeFit = {
  /** Samples on topics of the mapping. */
  taken: number
  /** Samples that became payloads, or a part of one. */
  mapped: number
  /** The result of the last one. */
  last: MapResult | null
}

/** Stands for the names that the gateway sees when devices connect to it. */
export const unknownSender = {
  clientId: '<client id>',
  userName: '<user name>',
  certificateName: '<certificate name>',
  identity: '<identity>',
}
const senderNames = Object.values(unknownSender)

const lastMax = 3
/** Rows of the proposed device table. */
const deviceNamesMax = 1000

export class Fit {
  readonly shapes: ReadonlyMap<TopicShape, ShapeFit>
  readonly fieldCounts = newCounts()
  readonly ignoredBy = new Map<string, number>()
  /** With the detail of the first message of each reason. */
  readonly refusedBy = new Map<string, { count: number; detail: string }>()
  /** Messages that the mapping does not understand. */
  refused = 0
  /** Omitted fields: `field: why`. */
  readonly omittedBy = new Map<string, number>()
  /** The values that devices without a known model lack; null for none. */
  withoutModel: string | null = null
  future = 0
  unset = 0
  /** The last payloads, as examples. */
  lastPayloads: readonly MappedPayload[] = []
  readonly #devices = new Set<string>()

  constructor(shapes: readonly TopicShape[]) {
    this.shapes = new Map(shapes.map((shape) => [shape, { taken: 0, mapped: 0, last: null }]))
  }

  get taken(): number {
    return this.#sum('taken')
  }

  /** Parts without a payload do not fit. */
  get mapped(): number {
    return this.fieldCounts.payloads === 0 ? 0 : this.#sum('mapped')
  }

  get devices(): number {
    return this.#devices.size
  }

  /** The first of them. */
  get deviceNames(): readonly string[] {
    return [...this.#devices].slice(0, deviceNamesMax)
  }

  /** Devices are named by their connection, which a subscriber does not see. */
  get namedBySender(): boolean {
    return [...this.#devices].some((device) => senderNames.some((name) => device.includes(name)))
  }

  add(outcomes: readonly Outcome[]): void {
    for (const one of outcomes) {
      const count = 'messages' in one ? one.messages : 1
      if (one.kind === 'payloads') this.#addPayloads(one.payloads)
      else if (one.kind === 'ignored')
        this.ignoredBy.set(one.reason, (this.ignoredBy.get(one.reason) ?? 0) + count)
      else this.#refuse(one.reason, one.detail, count)
    }
  }

  #sum(of: 'taken' | 'mapped'): number {
    return [...this.shapes.values()].reduce((sum, one) => sum + one[of], 0)
  }

  #refuse(reason: string, detail: string, count: number): void {
    // A message that a rule of the source refuses was understood.
    if (Object.hasOwn(unmappableReasons, reason)) this.refused += count
    const before = this.refusedBy.get(reason)
    this.refusedBy.set(reason, { count: (before?.count ?? 0) + count, detail: before?.detail ?? detail })
  }

  #addPayloads(payloads: readonly MappedPayload[]): void {
    for (const payload of payloads) {
      this.#devices.add(payload.device)
      countValues(this.fieldCounts, payload)
    }
    if (payloads.length > 0) this.lastPayloads = payloads.slice(-lastMax)
  }
}

// The values that a payload may have, for the rating of a mapping and for what it does not
// send.

type Body = { gps?: Record<string, unknown>; signals?: { type: string }[] }

type PayloadValue = {
  title: string
  /** Behind the sentence that it is missing. */
  more?: string
  weight: number
  /** It is missed in payloads with a position. */
  ofPosition?: boolean
  /** It depends on the model of the device. */
  ofModel?: boolean
  isIn(body: Body, payload: MappedPayload): boolean
}

const hasSignal = (wanted: string) => (body: Body) =>
  body.signals?.some(({ type }) => type === wanted) === true
const hasGps = (name: string) => (body: Body) => body.gps?.[name] !== undefined

const valuesByName = {
  position: { title: 'position', weight: 2, isIn: ({ gps }) => gps !== undefined },
  ownTime: {
    title: 'device time',
    more: ': the arrival time is sent',
    weight: 2,
    isIn: (_body, { deviceTime }) => deviceTime !== null,
  },
  speed: { title: 'speed', weight: 1, ofPosition: true, isIn: hasGps('speed') },
  heading: { title: 'heading', weight: 1, ofPosition: true, isIn: hasGps('heading') },
  motion: { title: 'motion', weight: 1, ofPosition: true, isIn: hasGps('inMotion') },
  odometer: { title: 'odometer', weight: 1, ofModel: true, isIn: hasSignal('OBD_LIFETIME_ODOMETER') },
  hours: { title: 'engine hours', weight: 1, ofModel: true, isIn: hasSignal('OBD_TOTAL_ENGINE_TIME') },
} as const satisfies Record<string, PayloadValue>

type ValueName = keyof typeof valuesByName

export const payloadValues = Object.entries(valuesByName) as [ValueName, PayloadValue][]

/** How many payloads there are, and how many of them have each value. */
type FieldCounts = Record<ValueName | 'payloads', number>

function newCounts(): FieldCounts {
  const zeros = payloadValues.map(([name]) => [name, 0] as const)
  return { payloads: 0, ...(Object.fromEntries(zeros) as Record<ValueName, number>) }
}

function countValues(counts: FieldCounts, payload: MappedPayload): void {
  const body = JSON.parse(payload.json) as Body
  counts.payloads += 1
  for (const [name, { isIn }] of payloadValues) if (isIn(body, payload)) counts[name] += 1
}

/** 1 where each payload has all values. */
export function shareOf(counts: FieldCounts): number {
  const sum = payloadValues.reduce((all, [name, { weight }]) => all + weight * counts[name], 0)
  const whole = payloadValues.reduce((all, [, { weight }]) => all + weight, 0)
  return sum / (counts.payloads * whole)
}
