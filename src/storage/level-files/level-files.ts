// level-files.ts: reads the files of a LevelDB database without LevelDB, which aborts the process on some
// damaged tables and drops what follows damage in a log. Entry file of this folder. It knows no payload.
//
//   crc32c.ts    the checksum of blocks and log records
//   types.ts     tables, logs, damage, and the check of a directory

export type {
  CheckProgress,
  CheckReport,
  CheckRequest,
  CheckStore,
  FileDamage,
  MendedLog,
  VerifiedTable,
} from './types.ts'
