// spool-errors.ts: the faults of a spool that cannot write, cannot read, or is closed.

import { GatewayError, messageOf } from '../std/gateway-error.ts'

export function closedFault(): GatewayError {
  return new GatewayError('SPOOL_CLOSED', {
    what: 'The spool is closed.',
    why: 'The daemon is stopping, or it is reopening the store after a failed write.',
    act: 'If this persists, look for the event store_lost in the log.',
  })
}

export function explainWrite(error: unknown): GatewayError {
  return new GatewayError('SPOOL_WRITE_FAILED', {
    what: 'A write to the spool failed.',
    why: `${messageOf(error)}.`,
    act:
      'Check the disk (no space or no inodes, read-only, failing). No message of this write was acknowledged. The gateway ' +
      'reopens the store.',
    cause: error,
  })
}

export function explainDamage(error: unknown): GatewayError {
  return new GatewayError('SPOOL_DAMAGED', {
    what: 'A part of the spool cannot be read.',
    why: `${messageOf(error)}.`,
    act:
      'Check the disk (dmesg, SMART) and copy the spool directory. Nothing was deleted. The rest of the ' +
      'spool is used as usual.',
    cause: error,
  })
}

export function explainRead(error: unknown): GatewayError {
  return new GatewayError('SPOOL_WRITE_FAILED', {
    what: 'The spool cannot be read.',
    why: `${messageOf(error)}.`,
    act: 'Check the disk. The gateway reopens the store.',
    cause: error,
  })
}
