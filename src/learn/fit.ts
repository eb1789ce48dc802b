// fit.ts: what a mapping made of the samples of the traffic.

import type { MappedPayload } from '../domain/payload.ts'
import { unmappableReasons, type MapResult, type StateChanges } from '../mapping/mapping.ts'
import { countValues, newCounts } from './payload-values.ts'
import type { TopicShape } from './topic-shapes.ts'

/** The results of the samples of one shape. */
export type ShapeFit = {
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

  add(result: MapResult): void {
    for (const one of result.rest ?? []) this.add(one)
    if (result.kind === 'payloads') this.#addPayloads(result.payloads)
    else if (result.kind === 'ignored') this.#ignore(result.reason, 1)
    else if (result.kind === 'unmappable') this.#refuse(result.reason, result.detail, 1)
  }

  apply({ payloads, unsent }: StateChanges): void {
    this.#addPayloads(payloads)
    for (const one of unsent)
      if (one.kind === 'ignored') this.#ignore(one.reason, one.messages)
      else this.#refuse(one.reason, one.detail, one.messages)
  }

  #sum(of: 'taken' | 'mapped'): number {
    return [...this.shapes.values()].reduce((sum, one) => sum + one[of], 0)
  }

  #ignore(reason: string, count: number): void {
    this.ignoredBy.set(reason, (this.ignoredBy.get(reason) ?? 0) + count)
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
