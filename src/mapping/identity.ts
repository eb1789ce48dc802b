// identity.ts: names made of content, so that the same reading has the same name however often it arrives.
//
// One SHA-256 per payload, over JSON text and therefore without ambiguity:
//
//   ["provider","device",signalTimestamp(,"arrival")],"gps":{...},"type":...   what was measured, by whom, and when
//
// Further fields (`map.fields`) enter it as well: what is sent of a message makes its name, so that of two
// messages that differ in nothing but a fuel level both pass. Motion that was derived from earlier speeds
// does not enter.
//
// Nothing of the device table enters but the provider: a carrier that is corrected tomorrow does not turn
// today's payloads into new ones. The first half of the digest becomes the payloadId, a UUID of version 8
// (RFC 9562), and the second half, with the position in the list, the ids of its signals.
//
// A message without a device time takes its arrival into the name, and then every resend would be new. For
// such a payload the window's key is made of client, topic and bytes, and only a resend that says so (DUP)
// is a copy.

import { hash } from 'node:crypto'
import type { PayloadId } from '../domain/ids.ts'
import type { Message } from '../domain/message.ts'

/** Each digit with the bits of RFC 9562's variant in front: 8, 9, a or b. */
const variants: Record<string, string> = {}
for (let digit = 0; digit < 16; digit += 1) variants[digit.toString(16)] = ((digit & 0x3) | 0x8).toString(16)

/** 64 hexadecimal digits. */
export function digestOf(name: string): string {
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

/** Names a message as such: the same client, topic and bytes, whatever they mean. 32 hexadecimal digits. */
export function messageKeyOf({ sender, topic, bytes }: Message): string {
  const { clientId } = sender
  const name = `${clientId.length}:${clientId}${topic.length}:${topic}`
  return hash('sha256', name + bytes.toString('latin1'), 'hex').slice(0, 32)
}

/** The window's key of the payload at `index` of a message that made several. */
export function partKeyOf(messageKey: string, index: number): string {
  return index === 0 ? messageKey : hash('sha256', `${messageKey}#${index}`, 'hex').slice(0, 32)
}
