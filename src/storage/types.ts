// types.ts: entries of a database and ranges of its keys.

/** Keys from `gte` up to but not including `lt`. */
export type StoreRange = { gte: Buffer; lt: Buffer }

export type StoreEntry = [key: Buffer, value: Buffer]

export type ReadOptions = {
  reverse?: boolean
  /** At most this many entries in all. */
  limit?: number
  /** About this many bytes in a page, and at least one entry. Default 256 KiB. */
  pageBytes?: number
}

export const defaultPageBytes = 256 * 1024
