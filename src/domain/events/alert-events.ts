// alert-events.ts: the events of alerts to receivers outside.

import { formatDuration } from '../../std/quantity.ts'
import { bounded } from '../../std/quote.ts'
import { count, event, field, why } from './events.ts'
import { sentence } from './event-text.ts'

const receiver = field<string>('name of the receiver or heartbeat')

const keyOfReceiver = ({ receiver }: { receiver: string }) => receiver

export const alertEvents = {
  alert_sent: event({
    fields: {
      receiver,
      headline: field<string>('first line of the alert'),
      changes: count('changes of conditions in it'),
    },
    meaning: 'A receiver got an alert.',
    level: 'info',
    text: ({ receiver, headline }) => `Alert sent to ${receiver}: ${sentence(bounded(headline, 200))}`,
  }),
  alert_failed: event({
    fields: {
      receiver,
      why,
      act: field<string>('what to do'),
      failures: count('failed tries in a row'),
      retryInMs: field<number>('time until the next try, in ms'),
    },
    meaning: 'An alert or a heartbeat could not be sent. It is tried again.',
    level: 'warn',
    text: ({ receiver, why, failures, retryInMs }) =>
      `Sending to ${receiver} failed, try ${failures}: ${sentence(why)} Next try in ${formatDuration(retryInMs)}.`,
    repeats: keyOfReceiver,
  }),
  alert_incomplete: event({
    fields: { receiver, why },
    meaning: 'A mail relay refused some recipients of an alert. The others got it.',
    level: 'warn',
    text: ({ receiver, why }) => `An alert for ${receiver} did not reach all recipients: ${sentence(why)}`,
    repeats: keyOfReceiver,
  }),
}
