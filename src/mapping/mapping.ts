// mapping.ts: the door of the mapping.

import type { MappedPayload } from '../domain/payload.ts'
import type { Message } from '../domain/message.ts'

export type MapResult =
  | { kind: 'payloads'; source: string; payloads: readonly MappedPayload[] }
  /** Deliberately nothing: a condition did not hold. `reason` is one of a bounded set of texts. */
  | { kind: 'ignored'; source: string; reason: string }
  /**
   * It becomes a dead letter. `reason` is a stable upper-case word (`NO_SOURCE`, `NOT_JSON`, ...), `detail` a
   * sentence. `windowKey` names this very message (client, topic, bytes), so that a resend with DUP is a copy.
   */
  | {
      kind: 'unmappable'
      source: string | null
      device: string | null
      reason: string
      detail: string
      windowKey: string
    }

export type Mapper = {
  /** Pure but for the caches; total: throws for no message whatever. */
  map(message: Message): MapResult
}
