// source-message.ts: what the readers of all bridges have in common: the object that each of them uses again
// for every message, and what becomes of a message, or of properties, above the limit.

import { formatSize } from '../../std/quantity.ts'
import { quote } from '../../std/quote.ts'
import type { MessageRefusal } from '../types.ts'
import type { SourceMessage } from './types.ts'

/** Without anything of a message; `qos` is that of a server that wants an acknowledgement. */
export function emptyMessage(): SourceMessage {
  return {
    topic: '',
    bytes: Buffer.alloc(0),
    qos: 1,
    retain: false,
    redelivered: false,
    storedAt: null,
    storedSerial: 0,
    userProperties: null,
    properties: null,
    ignoredFor: null,
    refusal: null,
  }
}

/** User properties of a message, and bytes of all its properties. */
const userPropertiesMax = 64
const propertyBytesMax = 16 * 1024

/** Leaves out the properties beyond the bounds. Gives their number. */
export function boundProperties(message: Pick<SourceMessage, 'userProperties' | 'properties'>): number {
  const { userProperties, properties } = message
  let bytes = 0
  const hasRoom = (...texts: readonly string[]) => {
    const size = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
    if (bytes + size > propertyBytesMax) return false
    bytes += size
    return true
  }
  let skipped = 0
  if (properties !== null) {
    const within = Object.entries(properties).filter(
      ([, value]) => typeof value !== 'string' || hasRoom(value),
    )
    skipped = Object.keys(properties).length - within.length
    if (skipped > 0) message.properties = within.length === 0 ? null : Object.fromEntries(within)
  }
  if (userProperties === null) return skipped
  const names = Object.keys(userProperties)
  const within: Record<string, string> = Object.create(null) as Record<string, string>
  let kept = 0
  for (const name of names) {
    if (kept === userPropertiesMax) break
    const value = userProperties[name]!
    if (!hasRoom(name, value)) continue
    kept += 1
    within[name] = value
  }
  if (kept < names.length) message.userProperties = kept === 0 ? null : within
  return skipped + names.length - kept
}

/** An oversized message of at most this size is kept whole in its dead letter. */
export const oversizedKeptMax = 80 * 1024
/** Bytes of a larger one that the dead letter shows. */
const shownBytes = 100

/**
 * Makes it a dead letter: the server would deliver it again without end. `size`: what `option` limits to
 * `bytesMax`, which may be more than its bytes.
 */
export function refuseOversized(
  message: { topic: string; bytes: Buffer; refusal: MessageRefusal | null },
  { size, option, bytesMax }: { size: number; option: string; bytesMax: number },
): void {
  const { bytes, topic } = message
  const isWhole = size <= oversizedKeptMax
  const begin = quote(bytes.toString('utf8', 0, shownBytes), shownBytes)
  message.refusal = {
    reason: 'OVERSIZED',
    detail:
      `A message of ${formatSize(size)} on ${quote(topic, 100)} is larger than ${option} (${formatSize(bytesMax)}). ` +
      (isWhole ? 'It is kept whole.' : `Its bytes are lost. It begins with ${begin}.`),
  }
  if (!isWhole) message.bytes = bytes.subarray(0, 0)
}
