// session-record-codec.ts: the records of stored sessions, as the spool keeps them. Pure.
//
//   session KEY         float64: wall clock of the last use
//                       uint32: seconds of its expiry; missing where the setting decides
//   qos2 ID KEY         uint32: checksum of the message with this packet identifier, which is not released
//   KEY                 CLIENT, or IDENTITY U+0000 CLIENT (clientNameOf)

import { clientNameOf } from '../../../domain/message.ts'

export type SessionRecord = { name: SessionName } & (
  | { kind: 'session'; usedAt: number; expiryMs: number }
  | { kind: 'unreleased'; messageId: number; checksum: number }
)

const usedBytes = 8
const expiryBytes = 4

/** `identity` is null for an anonymous client. */
export type SessionName = { key: string; clientId: string; identity: string | null }

export function sessionNameOf(clientId: string, identity: string | null): SessionName {
  return { key: clientNameOf({ clientId, identity }), clientId, identity }
}

export function sessionRecordName(key: string): string {
  return `session ${key}`
}

export function unreleasedRecordName(key: string, messageId: number): string {
  return `qos2 ${messageId} ${key}`
}

/** `expiryMs` is Infinity where the setting decides. */
export function usedRecord(usedAt: number, expiryMs: number): Buffer {
  const value = Buffer.allocUnsafe(Number.isFinite(expiryMs) ? usedBytes + expiryBytes : usedBytes)
  value.writeDoubleBE(usedAt)
  if (value.length > usedBytes) value.writeUInt32BE(Math.ceil(expiryMs / 1000), usedBytes)
  return value
}

export function checksumRecord(checksum: number): Buffer {
  const value = Buffer.allocUnsafe(4)
  value.writeUInt32BE(checksum)
  return value
}

/** Null for a record of another kind, which a later version wrote. */
export function recordOf(recordName: string, value: Buffer): SessionRecord | null {
  const match = /^(?:session|qos2 (\d+)) (?:([^]*)\0)?([^\0]*)$/.exec(recordName)
  if (match === null) return null
  const [, messageId, identity = null, clientId = ''] = match
  const name = sessionNameOf(clientId, identity)
  if (messageId === undefined)
    return value.length < usedBytes
      ? null
      : { name, kind: 'session', usedAt: value.readDoubleBE(), expiryMs: expiryMsIn(value) }
  if (value.length < 4) return null
  return { name, kind: 'unreleased', messageId: Number(messageId), checksum: value.readUInt32BE() }
}

function expiryMsIn(value: Buffer): number {
  const isGiven = value.length >= usedBytes + expiryBytes
  return isGiven ? value.readUInt32BE(usedBytes) * 1000 : Number.POSITIVE_INFINITY
}
