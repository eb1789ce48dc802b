// types.ts: what the reader of LevelDB's files finds in them.

/**
 * The checksummed unit that damage hits, or a whole file. A damaged `filter` hides no entry from this reader,
 * but LevelDB does not check it, and then misses keys.
 */
export type DamagedUnit =
  | 'CURRENT'
  | 'manifest'
  | 'table'
  | 'footer'
  | 'index'
  | 'filter'
  | 'block'
  | 'log record'
  | 'log'
  | 'directory'

/** A part of a file that cannot be read. `offset` and `bytes` are bytes of the file. */
export type FileDamage = {
  /** Name in the directory of the database, such as `000123.ldb`. */
  file: string
  unit: DamagedUnit
  offset: number
  bytes: number
  /** One sentence without a full stop: what is wrong. */
  what: string
  /**
   * User keys that the unit can hold: behind `after`, up to and including `until`; null for an unknown end.
   * Null where damage loses no entry by itself (an index, a footer, CURRENT).
   */
  keys: { after: Buffer | null; until: Buffer | null } | null
}

/** One version of an entry. `value` is null for a deletion. */
export type RawEntry = { key: Buffer; sequence: number; value: Buffer | null }

/** A block of a table: where its bytes are, without the five bytes of type and checksum behind it. */
export type BlockPlace = { offset: number; bytes: number }

/** A table as a version names it, or as it is in the directory. `level` is null where no version names it. */
export type TableFile = {
  number: number
  name: string
  bytes: number
  level: number | null
  /** User keys of the first and the last entry; null where unknown. */
  smallest: Buffer | null
  largest: Buffer | null
}

/** A table of a version, with the internal keys that bound it: what a manifest needs to name it. */
export type VersionTable = TableFile & { level: number; firstKey: Buffer; lastKey: Buffer }

/** A log as it is in the directory. */
export type LogFile = { number: number; name: string; bytes: number }

/** What the newest readable manifest says. */
export type Manifest = {
  name: string
  /** Logs with a smaller number hold nothing that is not in a table. */
  logNumber: number
  prevLogNumber: number
  nextFileNumber: number
  lastSequence: number
  comparator: string
  /** By number. `bytes` is what the manifest says. */
  tables: ReadonlyMap<number, VersionTable>
  /** False where a part of it could not be read or is missing: then every table of the directory counts. */
  isComplete: boolean
}

/** A table that was read completely and was whole. A file that differs in one of these is not verified. */
export type VerifiedTable = { number: number; bytes: number; mtimeMs: number }

export type CheckRequest = {
  /** Directory of the database. No other process may write to it meanwhile. */
  path: string
  logs: boolean
  tables: 'none' | 'unverified' | 'all'
  verified: readonly VerifiedTable[]
  /** Directory for copies of damaged logs. It is created when it is needed. */
  asidePath: string
  /** Rewrite a log that is bad before its end. */
  mend: boolean
}

export type CheckProgress = { bytesRead: number; bytesTotal: number; file: string }

/** A log that was bad before its end: it is at `aside` now, and was rewritten with what could be read. */
export type MendedLog = {
  file: string
  /** Null where it was not mended: without `mend`, or because something else is damaged. */
  aside: string | null
  lostBytes: number
  /** Null where it is not known. */
  lostOperations: number | null
  keptBatches: number
  damage: readonly FileDamage[]
}

export type CheckReport = {
  /** `empty`: no table and no log with content. */
  kind: 'empty' | 'ok' | 'damaged'
  /** What makes it `damaged`. */
  damage: readonly FileDamage[]
  mendedLogs: readonly MendedLog[]
  /** Tables that are known to be whole now. */
  verified: readonly VerifiedTable[]
  lastSequence: number
  tookMs: number
}

/** Checks a database. Rejects where its directory cannot be read, and when `signal` aborts. */
export type CheckStore = (
  request: CheckRequest,
  options: { onProgress(progress: CheckProgress): void; signal: AbortSignal },
) => Promise<CheckReport>
