// binary-values.ts: what the binary forms of JSON have in common: CBOR (cbor.ts) and MessagePack
// (message-pack.ts). The entry file of the folder.
//
// The value is what JSON would be: objects, lists, texts, numbers, true, false, null. By these rules:
//
//   a whole number       a number where a double holds it, else the text of its digits
//   a float of 32 bits   the shortest decimal that is this float: 12.3, not 12.300000190734863
//   NaN, infinities      null
//   bytes                a text of hexadecimal digits
//   a key                a text; a whole number becomes the text of its digits. The last of equal keys counts
//
// Total: no bytes make it throw. What a length says is believed only as far as bytes follow, values and
// levels have a bound, and nothing is allocated before it was read
// (docs/decisions/0068-own-cbor-and-messagepack.md).

import { setOwn } from '../path/path-eval.ts'
import { shortestOf } from '../protobuf/protobuf.ts'
import { refused, type DecodeFault } from '../reasons.ts'
import type { Decoded } from '../types.ts'

const levelsMax = 256
/** An empty object is one byte in a message and 60 in memory. */
const valuesMax = 50_000

/** Why the bytes are not of the format. Never leaves this folder. */
class Unreadable extends Error {
  readonly reason: DecodeFault

  constructor(reason: DecodeFault, detail: string) {
    super(detail)
    this.reason = reason
  }
}

export type Take = (reader: ValueReader) => unknown

/** Reads all bytes as one value. */
export function decodeBy(takeValue: Take, format: string, bytes: Buffer): Decoded {
  if (bytes.length === 0) return { kind: 'empty' }
  const reader = new ValueReader(bytes, format)
  try {
    const value = takeValue(reader)
    if (reader.at < bytes.length) reader.fail('has bytes behind its end')
    return { kind: 'value', value }
  } catch (error) {
    if (error instanceof Unreadable) return refused(error.reason, error.message)
    throw error
  }
}

export class ValueReader {
  at = 0
  private values = 0
  private levels = 0
  private readonly bytes: Buffer
  private readonly format: string

  constructor(bytes: Buffer, format: string) {
    this.bytes = bytes
    this.format = format
  }

  /** Begins a value: its first byte. */
  begin(): number {
    this.values += 1
    if (this.values > valuesMax)
      throw new Unreadable('TOO_MANY', `The message has more than ${valuesMax} values.`)
    return this.uint(1)
  }

  /** Of 1, 2 or 4 bytes. */
  uint(size: number): number {
    return this.bytes.readUIntBE(this.skip(size), size)
  }

  int(size: number): number {
    return this.bytes.readIntBE(this.skip(size), size)
  }

  uint64(): number | string {
    return wholeOf(this.bytes.readBigUInt64BE(this.skip(8)))
  }

  int64(): number | string {
    return wholeOf(this.bytes.readBigInt64BE(this.skip(8)))
  }

  float(): number | null {
    return shortestOf(this.bytes.readFloatBE(this.skip(4))) ?? null
  }

  double(): number | null {
    return finite(this.bytes.readDoubleBE(this.skip(8)))
  }

  text(length: number): string {
    const start = this.skip(length)
    return this.bytes.toString('utf8', start, this.at)
  }

  hex(length: number): string {
    const start = this.skip(length)
    return this.bytes.toString('hex', start, this.at)
  }

  list(count: number, take: Take): unknown[] {
    const list: unknown[] = []
    this.enter()
    for (let taken = 0; taken < count && !this.isEnd(count); taken += 1) list.push(take(this))
    this.levels -= 1
    return list
  }

  record(count: number, take: Take): Record<string, unknown> {
    const record: Record<string, unknown> = {}
    this.enter()
    for (let taken = 0; taken < count && !this.isEnd(count); taken += 1) {
      const key = take(this)
      if (typeof key !== 'string' && typeof key !== 'number')
        this.fail('has a key that is neither a text nor a number')
      setOwn(record, String(key), take(this))
    }
    this.levels -= 1
    return record
  }

  /** Throws. `what`: as in `has bytes behind its end`. */
  fail(what: string): never {
    throw new Unreadable('BAD_FRAME', `The message is not ${this.format}: it ${what}, at byte ${this.at}.`)
  }

  /** Takes the mark at the end of a list without a count, whose `count` is infinite. */
  private isEnd(count: number): boolean {
    if (count !== Number.POSITIVE_INFINITY || this.bytes[this.at] !== 0xff) return false
    this.at += 1
    return true
  }

  private enter(): void {
    this.levels += 1
    if (this.levels > levelsMax)
      throw new Unreadable(
        'TOO_DEEP',
        `The message nests objects and lists more than ${levelsMax} levels deep.`,
      )
  }

  /** The place of the next `size` bytes, which are taken. */
  private skip(size: number): number {
    const start = this.at
    if (size > this.bytes.length - start)
      throw new Unreadable(
        'TRUNCATED',
        `The message ends in the middle of a value: it was cut short, or is not ${this.format}.`,
      )
    this.at += size
    return start
  }
}

export function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null
}

export function wholeOf(value: bigint): number | string {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : String(value)
}
