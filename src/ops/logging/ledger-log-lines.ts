// ledger-log-lines.ts: the log lines of the ledger. See event-log-lines.ts.

import { assertNever } from '../../std/assert.ts'
import { formatSize } from '../../std/quantity.ts'
import { bounded } from '../../std/quote.ts'
import type { LedgerEvent } from '../conditions/ledger-conditions.ts'
import { faultLine, line, type Line } from './log-line.ts'

export function ledgerLine(event: LedgerEvent): Line {
  switch (event.kind) {
    case 'ledger_opened':
      return line('info', event, `The ledger has ${event.records} records, ${formatSize(event.bytes)}.`)
    case 'ledger_failed':
      return faultLine('warn', event.fault, `${event.fault.what} ${bounded(event.fault.why)}`, {
        retryInMs: event.retryInMs,
      })
    case 'ledger_set_aside':
      return line(
        'warn',
        event,
        `The records of the ledger are damaged (${bounded(event.why)}); they were set aside and new ones begun.`,
      )
    case 'ledger_receipts_damaged':
      return line('warn', event, `${event.receipts} receipts are damaged and miss in the ledger.`, 'receipts')
    default:
      return assertNever(event)
  }
}
