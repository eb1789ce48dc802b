// session-record-codec.ts: the records of stored sessions, as the spool keeps them. Pure.
//
//   session KEY         float64: wall clock of the last use
//   qos2 ID KEY         uint32: checksum of the message with this packet identifier, which is not released
//   KEY                 CLIENT, or IDENTITY U+0000 CLIENT (clientNameOf)

import { clientNameOf } from '../../../domain/message.ts'

export type SessionRecord = { name: SessionName } & (
  { kind: 'session'; usedAt: number } | { kind: 'unreleased'; messageId: number; checksum: number }
)

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

export function usedRecord(usedAt: number): Buffer {
  const value = Buffer.allocUnsafe(8)
  value.writeDoubleBE(usedAt)
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
    return value.length < 8 ? null : { name, kind: 'session', usedAt: value.readDoubleBE() }
  if (value.length < 4) return null
  return { name, kind: 'unreleased', messageId: Number(messageId), checksum: value.readUInt32BE() }
}
