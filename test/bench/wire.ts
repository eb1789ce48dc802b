// wire.ts: MQTT 3.1.1 by hand, for the load generator: a packet library costs more per message
// than the broker that is to be measured.
//
// A connection has one PUBLISH as a template. Each message is that template with three numbers moved on in
// place, digit by digit, and a packet identifier: so every message is another one, with a device time of its own.

/** PUBLISH with QoS 1: [MQTT-3.3.1]. */
const publishByte = 0x32
const pubackByte = 0x40

/** Bytes of PUBACK and CONNACK. */
export const answerBytes = 4

export function connectPacket(clientId: string): Buffer {
  const keepaliveS = 120
  const cleanSession = 0x02
  const start = [0x00, 0x04, ...Buffer.from('MQTT'), 0x04, cleanSession]
  const head = [...start, keepaliveS >> 8, keepaliveS & 0xff]
  return packet(0x10, Buffer.concat([Buffer.from(head), prefixed(clientId)]))
}

export const connackPacket = Buffer.from([0x20, 0x02, 0x00, 0x00])

/** The packet identifier of the PUBACK at `offset`; 0, which is none, where something else stands there. */
export function pubackIdAt(bytes: Buffer, offset: number): number {
  return bytes[offset] === pubackByte && bytes[offset + 1] === 2 ? bytes.readUInt16BE(offset + 2) : 0
}

export type Publisher = {
  packetBytes: number
  payloadBytes: number
  /** Writes the next message of this device and returns where it ends; the caller gives the room. */
  writeNext(target: Buffer, offset: number, messageId: number): number
  /** The device time of the next message, instead of one more than that of the last. */
  setTime(timeMs: number): void
}

export type PublisherOptions = {
  device: string
  payloadBytes: number
  /** Device time of the first message; each later one is a millisecond on. */
  firstTimeMs: number
  /** Six digits that no other run has, so that two runs on one gateway send nothing twice. */
  runDigits: string
}

export function createPublisher({
  device,
  payloadBytes,
  firstTimeMs,
  runDigits,
}: PublisherOptions): Publisher {
  const topic = `telemetry/v1/${device}`
  const message = messageOf({ device, payloadBytes, firstTimeMs, runDigits })
  const template = packet(publishByte, Buffer.concat([prefixed(topic), Buffer.from([0, 0]), message]))
  const payloadAt = template.length - message.length
  const messageIdAt = payloadAt - 2
  const text = template.toString('latin1')
  const fieldEnd = (name: string, digits: number) => text.indexOf(name) + name.length + digits - 1
  const time = { last: fieldEnd('"ts":', 13), digits: 13 }
  const sequence = { last: fieldEnd('"seq":"', 10), digits: 10 }
  const latitude = { last: fieldEnd('"lat":51.', 6), digits: 6 }
  return {
    packetBytes: template.length,
    payloadBytes: message.length,
    writeNext(target, offset, messageId) {
      increment(template, time)
      increment(template, sequence)
      increment(template, latitude)
      template.writeUInt16BE(messageId, messageIdAt)
      return offset + template.copy(target, offset)
    },
    setTime(timeMs) {
      template.write(String(timeMs - 1), time.last - time.digits + 1, 'latin1')
    },
  }
}

/** A message as the example mapping reads it, padded to the size that was asked for. */
function messageOf({ device, payloadBytes, firstTimeMs, runDigits }: PublisherOptions): Buffer {
  const text = (padding: string) =>
    `{"device":"${device}","seq":"0000000000","ts":${firstTimeMs},` +
    `"gps":{"lat":51.300000,"lon":9.${runDigits},"alt":201.4,"speed":54.3,"heading":187.2,"moving":true,"satellites":12},` +
    `"odometer":{"value":184223.412,"unit":"km"},"engineHours":{"value":4033.271,"unit":"h"},` +
    `"fuel":{"level":63.2},"fw":"${padding}"}`
  const missing = payloadBytes - text('').length
  if (missing < 0) throw new Error(`a message has at least ${text('').length} bytes, not ${payloadBytes}`)
  return Buffer.from(text('x'.repeat(missing)))
}

/** Adds one to decimal digits in place; what does not fit is dropped. */
function increment(bytes: Buffer, { last, digits }: { last: number; digits: number }): void {
  for (let at = last; at > last - digits; at -= 1) {
    const digit = bytes[at] ?? 0
    if (digit < 0x39) {
      bytes[at] = digit + 1
      return
    }
    bytes[at] = 0x30
  }
}

function prefixed(text: string): Buffer {
  const bytes = Buffer.from(text)
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 0xff]), bytes])
}

function packet(firstByte: number, rest: Buffer): Buffer {
  const length: number[] = []
  let left = rest.length
  do {
    const digit = left % 128
    left = Math.floor(left / 128)
    length.push(left > 0 ? digit | 0x80 : digit)
  } while (left > 0)
  return Buffer.concat([Buffer.from([firstByte, ...length]), rest])
}
