// alert-events.ts: the events of alerts to receivers outside.

import { formatDuration } from '../../std/quantity.ts'
import { bounded } from '../../std/quote.ts'
import type { alertEventFields } from '../../domain/event-fields/ops-event.ts'
import { sentence } from './event-text.ts'
import type { EventTable } from './types.ts'

const keyOfReceiver = ({ receiver }: { receiver: string }) => receiver

export const alertEvents: EventTable<keyof typeof alertEventFields> = {
  alert_sent: {
    meaning: 'A receiver got an alert.',
    level: 'info',
    text: ({ receiver, headline }) => `Alert sent to ${receiver}: ${sentence(bounded(headline, 200))}`,
  },
  alert_failed: {
    meaning: 'An alert or a heartbeat could not be sent. It is tried again.',
    level: 'warn',
    text: ({ receiver, why, failures, retryInMs }) =>
      `Sending to ${receiver} failed, try ${failures}: ${sentence(why)} Next try in ${formatDuration(retryInMs)}.`,
    repeats: keyOfReceiver,
  },
  alert_incomplete: {
    meaning: 'A mail relay refused some recipients of an alert. The others got it.',
    level: 'warn',
    text: ({ receiver, why }) => `An alert for ${receiver} did not reach all recipients: ${sentence(why)}`,
    repeats: keyOfReceiver,
  },
}
