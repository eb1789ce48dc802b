// teltonika-codec8.ts: a reading as a Teltonika truck unit (FMC650) writes it: one record in a frame of Codec
// 8 Extended, as a bridge from TCP publishes it. Read by the preset teltonika-codec8 with `model: FMC650`.

import type { Reading } from '../vehicle.ts'

const codec = 0x8e
const headBytes = 8
const positionBytes = 24

type Element = readonly [bytes: 1 | 2 | 4, id: number, value: number]

/** Ignition, movement, fuel in percent; supply in mV; engine hours, odometer in metres. */
function elementsOf(reading: Reading): readonly Element[] {
  return [
    [1, 239, 1],
    [1, 240, reading.moving ? 1 : 0],
    [1, 87, Math.round(reading.fuelPercent)],
    [2, 66, Math.round(reading.supplyVolts * 1000)],
    [4, 104, Math.floor(reading.engineHours)],
    [4, 216, Math.round(reading.odometerKm * 1000)],
  ]
}

export function teltonikaFrame(reading: Reading): Buffer {
  const elements = elementsOf(reading)
  const valueBytes = elements.reduce((sum, [bytes]) => sum + 2 + bytes, 0)
  // Codec, count, position, event, number of elements, five group counts, the elements, count again.
  const bodyBytes = 2 + positionBytes + 2 + 2 + 5 * 2 + valueBytes + 1
  const frame = Buffer.alloc(headBytes + bodyBytes + 4)
  frame.writeUInt32BE(bodyBytes, 4)
  frame.writeUInt8(codec, headBytes)
  frame.writeUInt8(1, headBytes + 1)
  let at = writePosition(frame, headBytes + 2, reading)
  at = frame.writeUInt16BE(0, at)
  at = frame.writeUInt16BE(elements.length, at)
  for (const width of [1, 2, 4, 8]) {
    const group = elements.filter(([bytes]) => bytes === width)
    at = frame.writeUInt16BE(group.length, at)
    for (const [bytes, id, value] of group) {
      at = frame.writeUInt16BE(id, at)
      at = frame.writeUIntBE(value, at, bytes)
    }
  }
  at = frame.writeUInt16BE(0, at)
  at = frame.writeUInt8(1, at)
  frame.writeUInt32BE(checksum(frame.subarray(headBytes, at)), at)
  return frame
}

function writePosition(frame: Buffer, start: number, reading: Reading): number {
  let at = frame.writeBigUInt64BE(BigInt(reading.at), start)
  at = frame.writeUInt8(0, at)
  at = frame.writeInt32BE(Math.round(reading.longitude * 1e7), at)
  at = frame.writeInt32BE(Math.round(reading.latitude * 1e7), at)
  at = frame.writeInt16BE(Math.round(reading.altitudeM), at)
  at = frame.writeUInt16BE(Math.round(reading.headingDeg) % 360, at)
  at = frame.writeUInt8(reading.satellites, at)
  return frame.writeUInt16BE(Math.round(reading.speedKmh), at)
}

/** CRC-16/IBM. */
function checksum(bytes: Buffer): number {
  let crc = 0
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit += 1) crc = (crc & 1) === 1 ? (crc >>> 1) ^ 0xa001 : crc >>> 1
  }
  return crc
}
