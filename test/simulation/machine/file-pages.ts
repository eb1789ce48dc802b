// file-pages.ts: the bytes of a simulated file, in pages that are allocated when they are written.
//
// A hole takes no memory and reads as zeros. A page with the same bytes as the one before it shares them: the
// ballast of the spool is 16 MiB of one block, which would take longer to copy than the rest of a start.

const pageBytes = 1024 * 1024

/** Behind `bytes`, which grow up to the size of a page, there are zeros. */
type Page = { bytes: Buffer; isShared: boolean }

export class FilePages {
  #size = 0
  readonly #pages: (Page | undefined)[] = []

  get size(): number {
    return this.#size
  }

  /** A copy of the bytes that are there. */
  slice(from: number, length: number): Buffer {
    const bytes = Buffer.allocUnsafe(Math.max(0, Math.min(length, this.#size - from)))
    this.copyTo(bytes, from)
    return bytes
  }

  /** Bytes copied: fewer than asked at the end of the file. */
  copyTo(into: Uint8Array, from: number): number {
    const length = Math.max(0, Math.min(into.length, this.#size - from))
    for (let done = 0; done < length;) {
      const { index, start, end } = placeOf(from + done, length - done)
      const found = this.#pages[index]?.bytes.subarray(start, end) ?? noBytes
      into.set(found, done)
      into.fill(0, done + found.length, done + end - start)
      done += end - start
    }
    return length
  }

  put(offset: number, source: Uint8Array): void {
    for (let done = 0; done < source.length;) {
      const { index, start, end } = placeOf(offset + done, source.length - done)
      const piece = source.subarray(done, done + end - start)
      const before = piece.length === pageBytes ? this.#pages[index - 1] : undefined
      if (before !== undefined && before.bytes.equals(piece)) {
        before.isShared = true
        this.#pages[index] = before
      } else this.#writable(index, end).set(piece, start)
      done += piece.length
    }
    this.#size = Math.max(this.#size, offset + source.length)
  }

  resize(size: number): void {
    if (size < this.#size) {
      const { index, start } = placeOf(size, 1)
      this.#pages.length = Math.min(this.#pages.length, start === 0 ? index : index + 1)
      const last = this.#pages[index]
      if (last !== undefined && start < last.bytes.length) this.#writable(index, start).fill(0, start)
    }
    this.#size = size
  }

  flip(offset: number, bit: number): void {
    const { index, start } = placeOf(offset, 1)
    const bytes = this.#writable(index, start + 1)
    bytes.writeUInt8(bytes.readUInt8(start) ^ (1 << bit), start)
  }

  /** A page of its own with at least `length` bytes. */
  #writable(index: number, length: number): Buffer {
    const page = this.#pages[index]
    if (page !== undefined && !page.isShared && page.bytes.length >= length) return page.bytes
    const known = page?.bytes.length ?? 0
    const doubled = length > known && known > 0 ? Math.min(pageBytes, 2 * known) : known
    const bytes = Buffer.alloc(Math.max(length, doubled))
    page?.bytes.copy(bytes)
    this.#pages[index] = { bytes, isShared: false }
    return bytes
  }
}

const noBytes = Buffer.alloc(0)

/** The part of one page from `offset` on, at most `length` bytes long. */
function placeOf(offset: number, length: number): { index: number; start: number; end: number } {
  const start = offset % pageBytes
  return { index: (offset - start) / pageBytes, start, end: Math.min(pageBytes, start + length) }
}
