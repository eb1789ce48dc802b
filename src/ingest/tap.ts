// tap.ts: somebody looks at messages as they come, raw and mapped.

import type { Message } from '../domain/message.ts'
import type { MapResult } from '../mapping/mapping.ts'

export type Tap = {
  /** Whether anybody looks: asked once per message. */
  readonly on: boolean
  /** `message` is the caller's and used again: what is kept of it is copied. */
  saw(message: Message, result: MapResult): void
}
