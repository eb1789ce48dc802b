// written-bytes.ts: a buffer that is filled from its start, again for each message. Its maker knows how
// much can be written at most; nothing is checked here.

export type WrittenBytes = { readonly bytes: Buffer; at: number }

/** Shorter pieces are copied byte by byte, which costs less than a call. */
const fewBytes = 24

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
  if (start === end) return
  written.bytes.copyWithin(written.at, start, end)
  written.at += end - start
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

/** The pieces that are written for each message are made once. ASCII only. */
export function pieceOf(text: string): Uint8Array {
  return Uint8Array.from(Buffer.from(text, 'latin1'))
}

export function isAscii(text: string): boolean {
  for (let index = 0; index < text.length; index += 1) if (text.charCodeAt(index) > 0x7e) return false
  return true
}
