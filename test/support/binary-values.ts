// binary-values.ts: writes values as CBOR and as MessagePack, bytes too. Numbers are whole numbers of 32 bits, or
// doubles.

type Writer = {
  bytes(length: number): Buffer
  text(length: number): Buffer
  list(length: number): Buffer
  object(length: number): Buffer
  double: number
  words: Readonly<Record<string, Buffer>>
  whole(value: number): Buffer
}

/** `first`, then `value` in `size` bytes. */
function head(first: number, value: number, size: number): Buffer {
  const bytes = Buffer.alloc(1 + size)
  bytes[0] = first
  if (size > 0) bytes.writeUIntBE(value, 1, size)
  return bytes
}

const byte = (value: number) => Buffer.from([value])

const ofCbor = (kind: number) => (value: number) => {
  const first = kind * 32
  if (value < 24) return byte(first + value)
  if (value < 256) return head(first + 24, value, 1)
  return value < 65_536 ? head(first + 25, value, 2) : head(first + 26, value, 4)
}

const cbor: Writer = {
  bytes: ofCbor(2),
  text: ofCbor(3),
  list: ofCbor(4),
  object: ofCbor(5),
  double: 0xfb,
  words: { false: byte(0xf4), true: byte(0xf5), null: byte(0xf6) },
  whole: (value) => (value < 0 ? ofCbor(1)(-1 - value) : ofCbor(0)(value)),
}

const messagePack: Writer = {
  bytes: (length) => (length < 256 ? head(0xc4, length, 1) : head(0xc6, length, 4)),
  text: (length) => (length < 32 ? byte(0xa0 + length) : head(0xdb, length, 4)),
  list: (length) => (length < 16 ? byte(0x90 + length) : head(0xdd, length, 4)),
  object: (length) => (length < 16 ? byte(0x80 + length) : head(0xdf, length, 4)),
  double: 0xcb,
  words: { null: byte(0xc0), false: byte(0xc2), true: byte(0xc3) },
  whole: (value) => {
    if (value < 0) return head(0xd2, 2 ** 32 + value, 4)
    return value < 128 ? byte(value) : head(0xce, value, 4)
  },
}

function written(value: unknown, writer: Writer): Buffer {
  if (Buffer.isBuffer(value)) return Buffer.concat([writer.bytes(value.length), value])
  if (typeof value === 'string') {
    const bytes = Buffer.from(value)
    return Buffer.concat([writer.text(bytes.length), bytes])
  }
  if (typeof value === 'number') {
    if (Number.isInteger(value) && Math.abs(value) < 2 ** 31) return writer.whole(value)
    const double = Buffer.alloc(9, writer.double)
    double.writeDoubleBE(value, 1)
    return double
  }
  if (Array.isArray(value))
    return Buffer.concat([writer.list(value.length), ...value.map((one) => written(one, writer))])
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).flatMap(([key, one]) => [
      written(key, writer),
      written(one, writer),
    ])
    return Buffer.concat([writer.object(members.length / 2), ...members])
  }
  return writer.words[String(value)]!
}

export const cborOf = (value: unknown) => written(value, cbor)
export const messagePackOf = (value: unknown) => written(value, messagePack)
