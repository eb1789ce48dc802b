// gateway-events.ts: the events of the life cycle: start, ready, stop.

import { formatDuration, plural } from '../../std/quantity.ts'
import type { EventName } from '../../domain/event.ts'
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
    text: ({ tookMs, pending }) =>
      `Stopped after ${formatDuration(tookMs)}. ${plural(pending, 'payload')} in the spool.`,
  },
}
