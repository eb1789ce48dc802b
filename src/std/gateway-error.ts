// gateway-error.ts: the catalogue of error codes, and the error that carries one. A code is API: it is never
// reused with another meaning; its text may improve.
//
// A programmer's mistake is an assertion (assert.ts). An answer of the service is a value
// (domain/outcome.ts). A GatewayError is a failure of the environment: a full disk, a wrong config, a port in
// use.

import { dirname, resolve } from 'node:path'

/** Every code with its meaning, one sentence each. The documentation is generated from this table. */
export const errorCodes = {
  CONFIG_INVALID: 'The configuration has problems. All of them are listed with line and column.',
  CONFIG_UNREADABLE: 'The configuration file cannot be read.',
  RESTART_REQUIRED: 'The new sources do not fit the bridges that run. Both are applied by a restart.',
  DEVICES_INVALID: 'The device table cannot be read or has invalid rows.',
  DEVICE_LISTED: 'The device table has the device already.',
  PASSWORDS_INVALID: 'A password file cannot be read or has invalid lines.',
  ACCESS_WITHDRAWN:
    'New users or authorities would close the connections of most clients. A person must confirm that.',
  CERTIFICATES_INVALID: 'Certificates of a listener cannot be used.',
  USAGE: 'The command line is wrong.',
  FAULT: 'The gateway has a fault. The process ends; no acknowledged message is lost.',
  ADDRESS_IN_USE: 'Another process listens on the configured address.',
  ADDRESS_UNAVAILABLE: 'The gateway cannot listen on the configured address.',
  SPOOL_LOCKED: 'Another process uses the spool directory.',
  SPOOL_DAMAGED: 'The spool database cannot be opened because its files are damaged.',
  SPOOL_MISSING: 'There is no spool in the given directory, or it is no longer at its path.',
  SPOOL_REPLACED: 'Another store is in the place of the one that the running daemon has written.',
  SPOOL_IN_MEMORY: 'The spool is on a file system in memory, and spool.allow_in_memory is not set.',
  SPOOL_VERSION: 'A newer version of the gateway wrote this spool.',
  SPOOL_READ_ONLY: 'The file system of the spool is read-only.',
  SPOOL_PERMISSION: 'The user of the gateway may not write to the spool directory.',
  SPOOL_PATH_MISSING: 'A directory above the spool directory is missing and cannot be created.',
  SPOOL_NOT_DIRECTORY: 'A file is in the place of the spool directory or of a directory above it.',
  SPOOL_PATH_INVALID: 'The path of the spool is too long or has circular links.',
  SPOOL_DISK_FULL: 'The file system of the spool has no space to open the spool.',
  SPOOL_UNWRITABLE: 'The spool directory cannot be created or written for another reason.',
  SPOOL_WRITE_FAILED: 'A write to the spool failed. The gateway acknowledged none of its messages.',
  SPOOL_CLOSED: 'The spool is closed, because the daemon stops or reopens it.',
  HELD_FULL: 'Too many messages wait in memory for a full store, so a connection was closed.',
  LANE_KNOWN: 'The lane has a provider, or does not exist, so none can be assigned.',
  SPOOL_ENTRY_GONE: 'The kept message or dead letter does not exist, or another command took it.',
  DEAD_LETTER_INVALID: 'The line or the edited text is not a valid payload or message.',
  BATCH_BUSY: 'The batch is in a submission now.',
  BATCH_GONE: 'There is no such batch: it was settled or replaced.',
  IMPORT_ENDED: 'The import that the request belongs to does not exist any more.',
  LEDGER_LOCKED: 'Another process uses the records of the ledger.',
  LEDGER_UNUSABLE: 'The records of the ledger cannot be opened or read. Delivery does not need them.',
  LEDGER_MISSING: 'The given spool has no ledger.',
  CREDENTIALS_MISSING: 'No credentials were found for a provider.',
  DAEMON_UNREACHABLE: 'The daemon does not answer on its ops address.',
  DAEMON_REFUSED: 'The daemon refused the request.',
  BROKER_UNREACHABLE: 'The MQTT broker does not answer.',
  SUBSCRIPTION_REFUSED: 'The MQTT broker accepted the connection and refused the subscription.',
  INPUT_UNREADABLE: 'An input file cannot be read.',
  OUTPUT_UNWRITABLE: 'An output file cannot be written.',
} as const

export type ErrorCode = keyof typeof errorCodes

export type ErrorText = {
  /** What happened, with the thing's name or path. */
  what: string
  /** Why it happened, as far as known. */
  why: string
  /** What the reader should do now. */
  act: string
  cause?: unknown
}

/** A failure of the environment, with three sentences for the person who must mend it. */
export class GatewayError extends Error {
  readonly code: ErrorCode
  readonly what: string
  readonly why: string
  readonly act: string

  constructor(code: ErrorCode, text: ErrorText) {
    super(
      `${text.what} ${text.why} ${text.act}`,
      text.cause === undefined ? undefined : { cause: text.cause },
    )
    this.name = 'GatewayError'
    this.code = code
    this.what = text.what
    this.why = text.why
    this.act = text.act
  }
}

/** The message of anything that was thrown, for the `why` of a GatewayError. */
export function messageOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown)
  const cause = thrown.cause instanceof Error ? ` (${thrown.cause.message})` : ''
  // A connection to a name with several addresses fails with an empty message and a code.
  return (thrown.message === '' ? (codeOf(thrown) ?? thrown.name) : thrown.message) + cause
}

/** The `code` of a Node or LevelDB error, also where it stands on the cause. */
export function codeOf(thrown: unknown): string | undefined {
  for (let error = thrown; error instanceof Error; error = error.cause) {
    if ('code' in error && typeof error.code === 'string') return error.code
  }
  return undefined
}

/** Of what a person named and cannot be read. `act`: what to give in its place. */
export function unreadable(what: string, error: unknown, act: string): GatewayError {
  const why = codeOf(error) === 'ENOENT' ? 'The file does not exist.' : `${messageOf(error)}.`
  return new GatewayError('INPUT_UNREADABLE', { what: `Cannot read ${what}.`, why, act, cause: error })
}

/** Of a file or a directory that a person named and that cannot be written. */
export function unwritable(path: string, error: unknown, act: string, what = 'write'): GatewayError {
  const why = whyUnwritable(path, error)
  return new GatewayError('OUTPUT_UNWRITABLE', { what: `Cannot ${what} ${path}.`, why, act, cause: error })
}

/** Why a file or a directory that a person named cannot be written, as a sentence. */
export function whyUnwritable(path: string, error: unknown): string {
  switch (codeOf(error)) {
    case 'ENOENT':
      return `The directory ${dirname(resolve(path))} does not exist.`
    case 'ENOTDIR':
      return 'A part of the path is a file, not a directory.'
    case 'EISDIR':
      return 'It is a directory.'
    case 'EEXIST':
      return 'It exists. Nothing is replaced.'
    case 'EACCES':
    case 'EPERM':
      return 'The user of the command may not write there.'
    case 'EROFS':
      return 'The file system is read-only.'
    case 'ENOSPC':
      return 'The disk is full.'
    case undefined:
    default:
      return `${messageOf(error).replace(/\.$/, '')}.`
  }
}
