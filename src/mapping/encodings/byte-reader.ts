// byte-reader.ts: reads the numbers of a binary message one behind the other. Beyond the end of the bytes it
// throws RangeError.

import { hexOf } from './text-bytes.ts'

export class ByteReader {
  at = 0
  readonly bytes: Buffer
  readonly #isLittle: boolean

  constructor(bytes: Buffer, order: 'big' | 'little' = 'big') {
    this.bytes = bytes
    this.#isLittle = order === 'little'
  }

  get isAtEnd(): boolean {
    return this.at >= this.bytes.length
  }

  /** Of 1 to 4 bytes. */
  uint(size: number): number {
    const at = this.take(size)
    if (size === 1) return this.bytes[at]!
    return this.#isLittle ? this.bytes.readUIntLE(at, size) : this.bytes.readUIntBE(at, size)
  }

  int(size: number): number {
    const at = this.take(size)
    return this.#isLittle ? this.bytes.readIntLE(at, size) : this.bytes.readIntBE(at, size)
  }

  uint64(): number | string {
    const at = this.take(8)
    return wholeOf(this.#isLittle ? this.bytes.readBigUInt64LE(at) : this.bytes.readBigUInt64BE(at))
  }

  int64(): number | string {
    const at = this.take(8)
    return wholeOf(this.#isLittle ? this.bytes.readBigInt64LE(at) : this.bytes.readBigInt64BE(at))
  }

  /** Null for NaN and the infinities, as for all floats. */
  float(): number | null {
    const at = this.take(4)
    return finite(this.#isLittle ? this.bytes.readFloatLE(at) : this.bytes.readFloatBE(at))
  }

  double(): number | null {
    const at = this.take(8)
    return finite(this.#isLittle ? this.bytes.readDoubleLE(at) : this.bytes.readDoubleBE(at))
  }

  text(length: number, encoding: 'utf8' | 'latin1' = 'utf8'): string {
    const start = this.take(length)
    return this.bytes.toString(encoding, start, this.at)
  }

  /** Bytes as hexadecimal text. */
  hex(length: number): string {
    const start = this.take(length)
    return hexOf(this.bytes.subarray(start, this.at))
  }

  /** A reader of the next bytes alone. */
  part(length: number): ByteReader {
    const start = this.take(length)
    return new ByteReader(this.bytes.subarray(start, this.at), this.#isLittle ? 'little' : 'big')
  }

  /** The place of the next `size` bytes, which are taken. */
  take(size: number): number {
    const start = this.at
    if (size > this.bytes.length - start) throw new RangeError('beyond the end')
    this.at += size
    return start
  }
}

export function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null
}

/** A number, or decimal text where a number would be rounded. */
export function wholeOf(value: bigint): number | string {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : String(value)
}
