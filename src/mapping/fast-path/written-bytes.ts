// written-bytes.ts: a buffer that is filled from its start, again for each message. Its maker knows how
// much can be written at most; nothing is checked here.

export type WrittenBytes = { readonly bytes: Buffer; at: number }

/** Shorter pieces are copied byte by byte, which costs less than a call. */
const fewBytes = 24
/** The same of bytes that are copied within the buffer. */
const someBytes = 40

const zero = 0x30

export function createWrittenBytes(size: number): WrittenBytes {
  return { bytes: Buffer.alloc(size), at: 0 }
}

export function put(written: WrittenBytes, piece: Uint8Array): void {
  const { length } = piece
  const { bytes, at } = written
  if (length > fewBytes) bytes.set(piece, at)
  else for (let index = 0; index < length; index += 1) bytes[at + index] = piece[index]!
  written.at = at + length
}

/** Copies a few bytes of a message. */
export function putFrom(written: WrittenBytes, source: Uint8Array, start: number, end: number): void {
  const { bytes } = written
  let { at } = written
  for (let from = start; from < end; from += 1) {
    bytes[at] = source[from]!
    at += 1
  }
  written.at = at
}

/** Copies what was written before. */
export function putAgain(written: WrittenBytes, start: number, end: number): void {
  const { bytes, at } = written
  const shift = at - start
  if (end - start > someBytes) bytes.copyWithin(at, start, end)
  else for (let from = start; from < end; from += 1) bytes[from + shift] = bytes[from]!
  written.at = end + shift
}

/** Times of 2001 to 2286, in milliseconds, have 13 digits. */
const timeMin = 1e12
const timeMax = 1e13
const lowDigits = 6
const highDigits = 7
const lowMax = 10 ** lowDigits

/** As JavaScript writes it, which takes long for a number of so many digits. */
export function putTime(written: WrittenBytes, time: number): void {
  if (!(time >= timeMin && time < timeMax && Number.isInteger(time))) {
    putText(written, String(time))
    return
  }
  const high = Math.floor(time / lowMax)
  putDigits(written, high, highDigits)
  putDigits(written, time - high * lowMax, lowDigits)
}

/** Of a number below 2^31, with zeros in front. */
function putDigits(written: WrittenBytes, number: number, digits: number): void {
  const { bytes, at } = written
  let rest = number | 0
  for (let place = at + digits - 1; place >= at; place -= 1) {
    const tenth = (rest / 10) | 0
    bytes[place] = zero + rest - tenth * 10
    rest = tenth
  }
  written.at = at + digits
}

/** ASCII only. */
export function putText(written: WrittenBytes, text: string): void {
  const { bytes } = written
  let { at } = written
  for (let index = 0; index < text.length; index += 1) {
    bytes[at] = text.charCodeAt(index)
    at += 1
  }
  written.at = at
}

/** The same of a text for which a call costs less. */
export function putLong(written: WrittenBytes, text: string): void {
  written.bytes.write(text, written.at, 'latin1')
  written.at += text.length
}

/** The pieces that are written for each message are made once. ASCII only. */
export function pieceOf(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, 'latin1'))
}

export function isAscii(text: string): boolean {
  for (let index = 0; index < text.length; index += 1) if (text.charCodeAt(index) > 0x7e) return false
  return true
}
