// types.ts: the types that the files of this folder share: observed traffic, the fit of a mapping, and
// proposals.

import type { Message } from '../domain/message.ts'
import type { MappedPayload } from '../domain/payload.ts'
import type { MapResult } from '../mapping/mapping.ts'
import type { FieldCounts } from './payload-values.ts'

/** Messages on topics of one form. */
export type TopicShape = {
  /** The topic filter: literal levels and `+`. */
  filter: string
  topics: number
  messages: number
  retained: number
  /** Published with QoS 0. */
  qos0: number
  /** Larger than a sample may be. */
  oversized: number
  samples: Message[]
  last: Message | null
}

export type ObservedTraffic = {
  messages: number
  bytes: number
  topics: number
  /** There were more topics than are counted one by one. */
  moreTopics: boolean
  /** Messages of shapes beyond the bound. */
  unshaped: number
  shapes: TopicShape[]
}

/** The results of the samples of one shape. */
export type ShapeFit = {
  /** Samples on topics of the mapping. */
  taken: number
  /** Samples that became payloads, or a part of one. */
  mapped: number
  /** The result of the last one. */
  last: MapResult | null
}

/** The results of a mapping for the samples. */
export type Fit = {
  shapes: ReadonlyMap<TopicShape, ShapeFit>
  taken: number
  mapped: number
  /** Messages that the mapping does not understand. */
  refused: number
  fieldCounts: FieldCounts
  devices: number
  /** The first of them. */
  deviceNames: readonly string[]
  /** Devices are named by their connection, which a subscriber does not see. */
  namedBySender: boolean
  ignoredBy: ReadonlyMap<string, number>
  /** With the detail of the first message of each reason. */
  refusedBy: ReadonlyMap<string, { count: number; detail: string }>
  /** Omitted fields: `field: why`. */
  omittedBy: ReadonlyMap<string, number>
  /** The values that devices without a known model lack; null for none. */
  withoutModel: string | null
  future: number
  unset: number
  /** The last payloads, as examples. */
  lastPayloads: readonly MappedPayload[]
}

/** Options of a source, as written in the config. */
export type SourceOptions = Readonly<Record<string, unknown>>

export type Proposal = {
  source: SourceOptions & { name: string }
  /** Null for a draft. */
  preset: string | null
  /** Of the source, or of its preset. */
  topics: readonly string[]
  /** Other presets that fit, the best first. */
  others: readonly string[]
  shapes: readonly TopicShape[]
  fit: Fit
  notes: readonly string[]
  /** Messages that were heard, with what they become. */
  examples: readonly Example[]
}

export type Example = { message: Message; payloads: readonly MappedPayload[] }

/** `unread` are shapes that no proposal reads. */
export type Proposed = { proposals: Proposal[]; unread: TopicShape[] }
