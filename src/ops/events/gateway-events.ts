// gateway-events.ts: the events of the life cycle (start, ready, stop), and of commands that change sealed
// batches.

import { formatDuration, plural } from '../../std/quantity.ts'
import { bounded } from '../../std/quote.ts'
import type { EventName } from '../../domain/event.ts'
import { forProvider } from './event-text.ts'
import type { EventTable } from './types.ts'

export const gatewayEvents: EventTable<Extract<EventName, `gateway_${string}`>> = {
  gateway_starting: {
    meaning: 'The gateway starts.',
    level: 'info',
    text: ({ version }) => `Telemetry gateway ${version} starts.`,
  },
  gateway_ready: {
    meaning: 'The gateway is ready: devices can publish.',
    level: 'info',
    text: ({ tookMs }) => `Ready after ${formatDuration(tookMs)}.`,
  },
  gateway_stopping: {
    meaning: 'The gateway stops.',
    level: 'info',
    text: ({ reason, deadlineMs }) => `Stopping (${reason}), within ${formatDuration(deadlineMs)}.`,
  },
  gateway_stopped: {
    meaning: 'The gateway has stopped. Payloads in the spool are delivered after the next start.',
    level: 'info',
    text({ tookMs, pending }) {
      const spool =
        pending === null ? 'The spool was not open.' : `${plural(pending, 'payload')} in the spool.`
      return `Stopped after ${formatDuration(tookMs)}. ${spool}`
    },
  },
}

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
