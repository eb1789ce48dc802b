// operator-events.ts: the events of commands that change sealed batches.

import { plural } from '../../std/quantity.ts'
import { bounded } from '../../std/quote.ts'
import { forProvider } from './event-text.ts'
import type { EventTable } from './types.ts'

export const operatorEvents: EventTable<'operator_action' | 'payloads_discarded'> = {
  operator_action: {
    meaning: 'An operator changed sealed batches with `batches`.',
    level: 'info',
    text({ action, by, selection, batches, payloads, newBatches, skipped }) {
      const what = `${plural(batches, 'batch', 'batches')} with ${plural(payloads, 'payload')}`
      const made = newBatches > 0 ? `, ${plural(newBatches, 'new batch', 'new batches')}` : ''
      const left = skipped > 0 ? `, ${skipped} skipped` : ''
      return `Operator ${bounded(by, 100)} ran \`batches ${action}\` on ${bounded(selection, 200)}: ${what}${made}${left}.`
    },
  },
  payloads_discarded: {
    meaning: 'An operator discarded a batch with `batches drop --discard`. Its payloads are lost.',
    level: 'error',
    text: ({ provider, batchId, payloads, by }) =>
      `Operator ${bounded(by, 100)} discarded batch ${batchId}${forProvider(provider)}: ` +
      `${plural(payloads, 'payload')} lost.`,
  },
}
