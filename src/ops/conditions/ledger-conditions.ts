// ledger-conditions.ts: the conditions of the ledger. See condition-rules.ts. None is above `warning`: nothing is late or lost by them.

import { assertNever } from '../../std/assert.ts'
import type { GatewayEvent } from '../../domain/event.ts'
import type { Conditions } from './conditions.ts'

export type LedgerEvent = Extract<GatewayEvent, { kind: `ledger_${string}` }>

const dayMs = 86_400_000

export function applyLedger(conditions: Conditions, event: LedgerEvent): void {
  switch (event.kind) {
    case 'ledger_opened':
      conditions.clear('LEDGER_UNAVAILABLE')
      return
    case 'ledger_failed': {
      const { what, why, act } = event.fault
      conditions.raise({ code: 'LEDGER_UNAVAILABLE', severity: 'warning', what, why, act })
      return
    }
    case 'ledger_set_aside':
      conditions.raise({
        code: 'LEDGER_SET_ASIDE',
        severity: 'warning',
        quietMs: dayMs,
        what: 'The records of the ledger are damaged; new ones were begun.',
        why: event.why,
        act: `Delivery does not need them. They are kept at ${event.path} as they were; check the disk.`,
      })
      return
    case 'ledger_receipts_damaged':
      conditions.raise({
        code: 'LEDGER_SET_ASIDE',
        key: 'receipts',
        severity: 'warning',
        quietMs: dayMs,
        times: event.receipts,
        what: 'Receipts of settled batches could not be read; the ledger misses them.',
        why: 'Their checksums are wrong.',
        act: 'Their payloads were delivered or kept all the same. Check the disk and the memory of this machine.',
      })
      return
    default:
      assertNever(event)
  }
}
