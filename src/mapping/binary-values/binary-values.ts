// binary-values.ts: what the binary forms of JSON have in common: CBOR (cbor.ts) and MessagePack
// (message-pack.ts). The entry file of the folder.
//
// The value is what JSON would be: objects, lists, texts, numbers, true, false, null. By these rules:
//
//   a whole number       a number where a double holds it, else the text of its digits
//   a float of 32 bits   the shortest decimal that is this float: 12.3, not 12.300000190734863
//   NaN, infinities      null
//   bytes                a text of hexadecimal digits behind 0x, which is no number by itself
//   a key                a text; a whole number becomes the text of its digits. The last of equal keys counts
//
// Total: no bytes make it throw. What a length says is believed only as far as bytes follow, values and
// levels have a bound, and nothing is allocated before it was read
// (docs/decisions/0068-own-cbor-and-messagepack.md).

import { tooManyValues, type BodyLimits } from '../body/body-limits.ts'
import { ByteReader } from '../encodings/byte-reader.ts'
import { setOwn } from '../path/path-eval.ts'
import { shortestOf } from '../protobuf/protobuf.ts'
import { refused, type DecodeFault } from '../reasons.ts'
import type { Decoded } from '../types.ts'

const levelsMax = 256

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
export function decodeBy(takeValue: Take, format: string, bytes: Buffer, limits: BodyLimits): Decoded {
  if (bytes.length === 0) return { kind: 'empty' }
  const reader = new ValueReader(bytes, format, limits)
  try {
    const value = takeValue(reader)
    if (!reader.isAtEnd) reader.fail('has bytes behind its end')
    return { kind: 'value', value }
  } catch (error) {
    if (error instanceof Unreadable) return refused(error.reason, error.message)
    if (!(error instanceof RangeError)) throw error
    const detail = `The message ends in the middle of a value: it was cut short, or is not ${format}.`
    return refused('TRUNCATED', detail)
  }
}

export class ValueReader extends ByteReader {
  #values = 0
  #levels = 0
  readonly #format: string
  readonly #limits: BodyLimits

  constructor(bytes: Buffer, format: string, limits: BodyLimits) {
    super(bytes)
    this.#format = format
    this.#limits = limits
  }

  /** Begins a value: its first byte. */
  begin(): number {
    this.#count()
    return this.uint(1)
  }

  override float(): number | null {
    return shortestOf(super.float() ?? Number.NaN) ?? null
  }

  list(count: number, take: Take): unknown[] {
    const list: unknown[] = []
    this.#enter()
    for (let taken = 0; taken < count && !this.#isEnd(count); taken += 1) list.push(take(this))
    this.#levels -= 1
    return list
  }

  record(count: number, take: Take): Record<string, unknown> {
    const record: Record<string, unknown> = {}
    this.#enter()
    for (let taken = 0; taken < count && !this.#isEnd(count); taken += 1) {
      const key = take(this)
      if (typeof key !== 'string' && typeof key !== 'number')
        this.fail('has a key that is neither a text nor a number')
      setOwn(record, String(key), take(this))
    }
    this.#levels -= 1
    return record
  }

  /** Throws. `what`: as in `has bytes behind its end`. */
  fail(what: string): never {
    throw new Unreadable('BAD_FRAME', `The message is not ${this.#format}: it ${what}, at byte ${this.at}.`)
  }

  /** Takes the mark at the end of a list without a count, whose `count` is infinite. */
  #isEnd(count: number): boolean {
    if (count !== Number.POSITIVE_INFINITY || this.bytes[this.at] !== 0xff) return false
    this.at += 1
    return true
  }

  #count(): void {
    this.#values += 1
    if (this.#values <= this.#limits.valuesMax) return
    const { reason, detail } = tooManyValues(this.#limits)
    throw new Unreadable(reason, detail)
  }

  /** Of an object or a list, which counts as two. */
  #enter(): void {
    this.#count()
    this.#levels += 1
    if (this.#levels > levelsMax)
      throw new Unreadable(
        'TOO_DEEP',
        `The message nests objects and lists more than ${levelsMax} levels deep.`,
      )
  }
}
