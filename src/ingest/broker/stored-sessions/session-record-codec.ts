// session-record-codec.ts: the records of stored sessions, as the spool keeps them. Pure.
//
//   session CLIENT      float64: wall clock of the last use
//   qos2 ID CLIENT      uint32: checksum of the message with this packet identifier, which is not released

export type SessionRecord =
  | { kind: 'session'; clientId: string; usedAt: number }
  | { kind: 'unreleased'; clientId: string; messageId: number; checksum: number }

export function sessionName(clientId: string): string {
  return `session ${clientId}`
}

export function unreleasedName(clientId: string, messageId: number): string {
  return `qos2 ${messageId} ${clientId}`
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
export function recordOf(name: string, value: Buffer): SessionRecord | null {
  const match = /^(?:session|qos2 (\d+)) ([^]*)$/.exec(name)
  if (match === null) return null
  const [, messageId, clientId = ''] = match
  if (messageId === undefined)
    return value.length < 8 ? null : { kind: 'session', clientId, usedAt: value.readDoubleBE() }
  if (value.length < 4) return null
  return { kind: 'unreleased', clientId, messageId: Number(messageId), checksum: value.readUInt32BE() }
}
