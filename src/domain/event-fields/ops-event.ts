// ops-event.ts: the events of the HTTP server (changes by operators and refused requests), and of
// alerts.

import { count, field, why } from './event-fields.ts'

/** Why a request on ops.listen is refused. */
export type RequestRefusal =
  | 'host'
  | 'cross_site'
  | 'malformed'
  | 'no_users'
  | 'no_user'
  | 'bad_password'
  | 'right'
  | 'busy'
  | 'limited'
  | 'no_token'

const conditionCode = field<string>('code of the condition')
const conditionKey = field<string | null>('what it is about, such as a provider; null for the gateway')
const severity = field<'info' | 'warning' | 'error' | 'critical'>('how bad it is')
const what = field<string>('what is wrong, or was')

export const conditionEventFields = {
  condition_raised: {
    code: conditionCode,
    key: conditionKey,
    severity,
    what,
    why,
    act: field<string>('what to do'),
  },
  condition_cleared: {
    code: conditionCode,
    key: conditionKey,
    severity,
    what,
    lastedMs: field<number>('how long it was open, in ms'),
  },
}

export const opsEventFields = {
  change_made: {
    change: field<string>('path below /control, such as `dead-letters/purge`'),
    request: field<string>('parameters of the request'),
    by: field<string>(
      'who: on the control socket the OS user and SUDO_USER as claimed, over TCP user and address',
    ),
    outcome: field<'done' | 'refused' | 'unknown'>('what became of it'),
    result: field<string>('numbers of the answer, or the error, as JSON'),
    tookMs: field<number>('duration in ms'),
  },
  request_refused: {
    reason: field<RequestRefusal>('why the last one was refused'),
    count: count('refused requests with this reason since the last such event'),
    address: field<string>('address of the last one'),
    user: field<string | null>('user that the last one named; null for none'),
    path: field<string>('path of the last one'),
  },
}

const receiver = field<string>('name of the receiver or heartbeat')

export const alertEventFields = {
  alert_sent: {
    receiver,
    headline: field<string>('first line of the alert'),
    changes: count('changes of conditions in it'),
  },
  alert_failed: {
    receiver,
    why,
    act: field<string>('what to do'),
    failures: count('failed tries in a row'),
    retryInMs: field<number>('time until the next try, in ms'),
  },
  alert_incomplete: { receiver, why },
}
