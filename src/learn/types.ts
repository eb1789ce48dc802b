// types.ts: what is proposed.

import type { Message } from '../domain/message.ts'
import type { MappedPayload } from '../domain/payload.ts'
import type { Fit } from './fit.ts'
import type { TopicShape } from './topic-shapes.ts'

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
