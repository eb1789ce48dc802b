// identity.ts: ids made of content, so that the same reading has the same id however often it arrives.
//
// One SHA-256 per payload, over JSON text, which has one meaning only:
//
//   ["provider","device",signalTimestamp(,"arrival"(,serial))],"gps":{...},"type":...  device, time, what
//   ["provider","device",signalTimestamp,"stored"(,serial)],...     without a time, but stored by a server
//
// Extra fields (`map.fields`) are part of it: of two messages that differ in a fuel level only both pass.
// Motion that was derived from earlier speeds is not part of it, and nothing that reads `$previous`.
//
// Of the device table only the provider is part of it: a carrier that is corrected tomorrow does not turn
// today's payloads into new ones. The first half of the digest becomes the payloadId, a UUID of version 8
// (RFC 9562), and the second half, with the position in the list, the ids of its signals.
//
// The name of a payload without a device time contains the arrival, and every resend would be new. Therefore
// its window key is made of client, topic and bytes, and only a resend with DUP is a duplicate.

import { hash } from 'node:crypto'
import type { PayloadId } from '../domain/ids.ts'
import { propertiesText, type Message } from '../domain/message.ts'

/** Each digit with the bits of RFC 9562's variant in front: 8, 9, a or b. */
const variants: Record<string, string> = {}
for (let digit = 0; digit < 16; digit += 1) variants[digit.toString(16)] = ((digit & 0x3) | 0x8).toString(16)

/** 64 hexadecimal digits. */
export function digestOf(name: string | Uint8Array): string {
  return hash('sha256', name, 'hex')
}

/** The payloadId's 32 digits without its hyphens: the key of the dedup window. */
export function windowKeyOf(digest: string): string {
  return `${digest.slice(0, 12)}8${digest.slice(13, 16)}${variantAt(digest, 16)}${digest.slice(17, 32)}`
}

export function payloadIdOf(digest: string): PayloadId {
  return `${head(digest, 0)}${digest.slice(20, 32)}` as PayloadId
}

/** The ids of a payload's signals, without their last four digits: those are the position in the list. */
export function signalIdHeadOf(digest: string): string {
  return `${head(digest, 32)}${digest.slice(52, 60)}`
}

/** `signalIdHeadOf` completed for the signal at `index`, below 65,536. */
export function signalIdTail(index: number): string {
  return index.toString(16).padStart(4, '0')
}

function head(digest: string, start: number): string {
  const low = digest.slice(start, start + 8)
  const mid = digest.slice(start + 8, start + 12)
  const high = digest.slice(start + 13, start + 16)
  const sequence = digest.slice(start + 17, start + 20)
  return `${low}-${mid}-8${high}-${variantAt(digest, start + 16)}${sequence}-`
}

function variantAt(digest: string, at: number): string {
  return variants[digest.charAt(at)] ?? '8'
}

/**
 * The key of a message: client, topic, bytes and properties, whatever they mean. 32 hexadecimal digits. A
 * message without properties has the key that it had before there were any.
 */
export function messageKeyOf(message: Message): string {
  const { sender, topic, bytes } = message
  const { clientId } = sender
  const name = `${clientId.length}:${clientId}${topic.length}:${topic}`
  return hash('sha256', name + bytes.toString('latin1') + propertiesText(message), 'hex').slice(0, 32)
}

/** The window key of the payload at `index` of a message. */
export function partKeyOf(messageKey: string, index: number): string {
  return index === 0 ? messageKey : hash('sha256', `${messageKey}#${index}`, 'hex').slice(0, 32)
}

/**
 * Two equal records of one message are two readings: their position in the list distinguishes them.
 */
export function distinct(name: string, before: Set<string>, index: number): string {
  const own = before.has(name) ? `${name}#${index}` : name
  before.add(own)
  return own
}

/** Equal readings without a device time that arrive in one millisecond are different readings. */
export function numbered(mark: 'arrival' | 'stored', serial: number): string {
  return serial === 0 ? `,"${mark}"]` : `,"${mark}",${serial}]`
}
