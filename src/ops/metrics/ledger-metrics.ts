// ledger-metrics.ts: the metrics of the ledger. See metrics-catalogue.ts.

import { counter, gauge, ledger, type Metric } from './metric-readings.ts'

export const ledgerMetrics: readonly Metric[] = [
  gauge('gateway_ledger_records', 'Settled payloads in the ledger.', ledger('records')),
  gauge('gateway_ledger_bytes', 'Size of the ledger.', ledger('bytes')),
  gauge('gateway_ledger_behind_receipts', 'Settled batches not yet copied to the ledger.', ledger('behind')),
  gauge('gateway_ledger_behind_bytes', 'Size of the receipts not yet copied.', ledger('behindBytes')),
  counter('gateway_ledger_dropped_total', 'Payloads removed at ledger.max_bytes.', ledger('dropped')),
  counter('gateway_ledger_expired_total', 'Payloads removed at ledger.retention.', ledger('expired')),
  counter('gateway_ledger_missed_total', 'Settled batches whose receipt did not fit.', ledger('missed')),
  counter('gateway_ledger_reread_total', 'Receipts read from the disk to be copied.', ledger('reread')),
  counter('gateway_ledger_damaged_total', 'Receipts that cannot be read.', ledger('damaged')),
]
