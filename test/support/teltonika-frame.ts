// teltonika-frame.ts: frames of Teltonika trackers as a tracker writes them, for tests.

/** The value of an element: an integer with its size in bytes, or bytes of any length (Codec 8 Extended only). */
export type Element = { id: number; bytes: 1 | 2 | 4 | 8; value: bigint } | { id: number; raw: Buffer }

export type AvlRecord = {
  ts: number
  priority: number
  /** 1e-7 degrees. */
  latitude: number
  longitude: number
  altitude: number
  angle: number
  satellites: number
  speed: number
  event: number
  /** Codec 16 only. */
  generation?: number
  elements: readonly Element[]
}

export type Codec = 0x08 | 0x8e | 0x10

/** From the codec to the second count. */
export function teltonikaBody(codec: Codec, records: readonly AvlRecord[]): Buffer {
  const parts = records.map((record) => recordOf(codec, record))
  return Buffer.concat([whole(1, codec), whole(1, records.length), ...parts, whole(1, records.length)])
}

/** As on TCP: zeros, the length, the body, its checksum. */
export function tcpFrame(body: Buffer): Buffer {
  return Buffer.concat([whole(4, 0), whole(4, body.length), body, whole(4, checksum(body))])
}

export function udpFrame(body: Buffer, imei: string): Buffer {
  const channel = Buffer.concat([
    Buffer.from([0xca, 0xfe, 1, 5]),
    whole(2, imei.length),
    Buffer.from(imei),
    body,
  ])
  return Buffer.concat([whole(2, channel.length), channel])
}

export function checksum(bytes: Buffer): number {
  let crc = 0
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >> 1) ^ 0xa001 : crc >> 1
  }
  return crc
}

function recordOf(codec: Codec, record: AvlRecord): Buffer {
  const idBytes = codec === 0x08 ? 1 : 2
  const countBytes = codec === 0x8e ? 2 : 1
  const place = Buffer.alloc(24)
  place.writeBigUInt64BE(BigInt(record.ts), 0)
  place.writeUInt8(record.priority, 8)
  place.writeInt32BE(record.longitude, 9)
  place.writeInt32BE(record.latitude, 13)
  place.writeInt16BE(record.altitude, 17)
  place.writeUInt16BE(record.angle, 19)
  place.writeUInt8(record.satellites, 21)
  place.writeUInt16BE(record.speed, 22)
  const parts = [place, whole(idBytes, record.event)]
  if (codec === 0x10) parts.push(whole(1, record.generation ?? 0))
  parts.push(whole(countBytes, record.elements.length))
  for (const bytes of [1, 2, 4, 8] as const) {
    const group = record.elements.filter((element) => 'bytes' in element && element.bytes === bytes)
    parts.push(whole(countBytes, group.length))
    for (const element of group)
      if ('value' in element) parts.push(whole(idBytes, element.id), whole(bytes, element.value))
  }
  if (codec !== 0x8e) return Buffer.concat(parts)
  const variable = record.elements.filter((element) => 'raw' in element)
  parts.push(whole(2, variable.length))
  for (const element of variable)
    if ('raw' in element) parts.push(whole(2, element.id), whole(2, element.raw.length), element.raw)
  return Buffer.concat(parts)
}

/** An integer of the given size in bytes, big-endian. */
function whole(bytes: 1 | 2 | 4 | 8, value: number | bigint): Buffer {
  const full = Buffer.alloc(8)
  full.writeBigUInt64BE(BigInt(value))
  return full.subarray(8 - bytes)
}
