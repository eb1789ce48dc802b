// alert-events.ts: the events of alerts to receivers outside.

import { formatDuration } from '../../std/quantity.ts'
import { bounded } from '../../std/quote.ts'
import type { alertEventFields } from '../../domain/event-fields/ops-event.ts'
import { sentence } from './event-text.ts'
import type { EventTable } from './types.ts'

/** Tries in a row. Fewer are an interruption that a person need not know. */
const failuresMax = 3

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
    raises: {
      ALERTS_FAILING: ({ receiver, why, act, failures }) =>
        failures < failuresMax
          ? null
          : {
              key: receiver,
              what: `The receiver ${receiver} gets no alerts: ${failures} tries in a row failed.`,
              why: sentence(why),
              act: `${sentence(act)} Then run \`telemetry-gateway alerts test ${receiver}\`.`,
              present: failures,
            },
    },
  },
  alert_incomplete: {
    meaning: 'A mail relay refused some recipients of an alert. The others got it.',
    level: 'warn',
    text: ({ receiver, why }) => `An alert for ${receiver} did not reach all recipients: ${sentence(why)}`,
    repeats: keyOfReceiver,
    raises: {
      ALERTS_FAILING: ({ receiver, why }) => ({
        key: receiver,
        what: `Some recipients of ${receiver} get no alerts.`,
        why: sentence(why),
        act: 'Correct `recipients` of the receiver, or ask who runs the relay.',
      }),
    },
  },
  alert_receiver_works: {
    meaning: 'A receiver got an alert or a heartbeat again after failures.',
    level: 'info',
    text: ({ receiver }) => `Sending to ${receiver} works again.`,
    clears: { ALERTS_FAILING: keyOfReceiver },
  },
  alert_receiver_removed: {
    meaning: 'A receiver that failed is not in the config any more, or has another target.',
    level: 'info',
    text: ({ receiver }) => `The failing receiver ${receiver} was removed or changed.`,
    clears: { ALERTS_FAILING: keyOfReceiver },
  },
}
