// spool-errors.ts: what the spool says when it cannot write, cannot read, or is closed.

import { GatewayError, messageOf } from '../std/gateway-error.ts'

export function closedFault(): GatewayError {
  return new GatewayError('SPOOL_CLOSED', {
    what: 'The spool takes nothing now.',
    why: 'Its store is closed, because the daemon stops or opens it anew after a failed write.',
    act: 'Nothing to do if this passes; else look for the event store_lost in the log.',
  })
}

export function explainWrite(error: unknown): GatewayError {
  return new GatewayError('SPOOL_WRITE_FAILED', {
    what: 'A write to the spool failed.',
    why: `${messageOf(error)}.`,
    act: 'Check the disk (full, read-only, failing). Nothing of the write was acknowledged; the spool reopens by itself.',
    cause: error,
  })
}

export function explainDamage(error: unknown): GatewayError {
  return new GatewayError('SPOOL_DAMAGED', {
    what: 'A part of the spool cannot be read.',
    why: `${messageOf(error)}.`,
    act: 'Check the disk (dmesg, SMART) and copy the spool directory aside. Nothing was deleted; the rest goes on.',
    cause: error,
  })
}

export function explainRead(error: unknown): GatewayError {
  return new GatewayError('SPOOL_WRITE_FAILED', {
    what: 'The spool cannot be read.',
    why: `${messageOf(error)}.`,
    act: 'Check the disk. The spool is closed and opened anew by itself.',
    cause: error,
  })
}

export function explainOpening(path: string, error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  return new GatewayError('SPOOL_UNWRITABLE', {
    what: `Cannot open the spool at ${path}.`,
    why: `${messageOf(error)}.`,
    act: 'Check the disk; the gateway tries again by itself.',
    cause: error,
  })
}
