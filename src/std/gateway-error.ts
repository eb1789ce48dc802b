// gateway-error.ts: the catalogue of errors. A code is API: documented in README, never reworded into another meaning.
//
// A programmer's mistake is an assertion (assert.ts), an answer of the service is a value (domain/outcome.ts);
// what stands here is the broken world: a full disk, a wrong config, a port in use.

/** Every code, with one sentence for the README's table of error codes. */
export const faultCodes = {
  CONFIG_INVALID: 'The configuration has problems; all of them are listed with line and column.',
  CONFIG_UNREADABLE: 'The configuration file cannot be read.',
  DEVICES_INVALID: 'The device table cannot be read or has bad rows.',
  USAGE: 'The command line is wrong.',
  ADDRESS_IN_USE: 'Another process listens on the configured address.',
  ADDRESS_UNAVAILABLE: 'The configured address cannot be listened on.',
  SPOOL_LOCKED: 'Another process uses the spool directory.',
  SPOOL_DAMAGED: 'The spool database cannot be opened because its files are damaged.',
  SPOOL_MISSING: 'There is no spool in the given directory.',
  SPOOL_VERSION: 'The spool was written by a newer version of the gateway.',
  SPOOL_UNWRITABLE: 'The spool directory cannot be created or written.',
  SPOOL_WRITE_FAILED: 'A write to the spool failed; nothing of it was acknowledged.',
  SPOOL_CLOSED: 'The spool is closed; the daemon is stopping or reopening it.',
  SPOOL_ENTRY_GONE: 'A kept message or dead letter is not there: somebody else took it, or it never was.',
  LETTER_UNFIT: 'A payload or message cannot take its place on the road: it is not what the gateway reads.',
  LEDGER_LOCKED: 'Another process uses the records of the ledger.',
  LEDGER_UNUSABLE: 'The records of the ledger cannot be opened or read. Delivery does not need them.',
  LEDGER_MISSING: 'No ledger was kept in the given spool.',
  CREDENTIALS_MISSING: 'No credentials were found for a provider.',
  DAEMON_UNREACHABLE: 'The running daemon does not answer on its ops address.',
  DAEMON_REFUSED: 'The running daemon refused what it was asked for.',
  BROKER_UNREACHABLE: 'The MQTT broker does not answer.',
  SUBSCRIPTION_REFUSED: 'The MQTT broker lets us in, but does not let us listen.',
  INPUT_UNREADABLE: 'An input file cannot be read.',
  OUTPUT_UNWRITABLE: 'An output file cannot be written.',
} as const

export type FaultCode = keyof typeof faultCodes

export type FaultText = {
  /** What happened, with the thing's name or path. */
  what: string
  /** Why it happened, as far as known. */
  why: string
  /** What the reader should do now. */
  act: string
  cause?: unknown
}

/** A broken world, told to somebody who reads it at three in the morning. */
export class GatewayError extends Error {
  readonly code: FaultCode
  readonly what: string
  readonly why: string
  readonly act: string

  constructor(code: FaultCode, text: FaultText) {
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
  return thrown.message + cause
}

/** The `code` of a Node or LevelDB error, also where it stands on the cause. */
export function codeOf(thrown: unknown): string | undefined {
  for (let error = thrown; error instanceof Error; error = error.cause) {
    if ('code' in error && typeof error.code === 'string') return error.code
  }
  return undefined
}
