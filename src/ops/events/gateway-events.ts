// gateway-events.ts: the events of the life cycle (start, ready, stop), of changes by operators, and of the
// HTTP server.

import { formatDuration, plural } from '../../std/quantity.ts'
import { bounded, quote } from '../../std/quote.ts'
import type { EventName } from '../../domain/event.ts'
import type {
  conditionEventFields,
  opsEventFields,
  RequestRefusal,
} from '../../domain/event-fields/ops-event.ts'
import { forProvider, sentence } from './event-text.ts'
import type { EventTable } from './types.ts'

export const gatewayEvents: EventTable<Extract<EventName, `gateway_${string}` | 'config_warning'>> = {
  config_warning: {
    meaning: 'The config is valid and allows something that a person should know. `check` shows the same.',
    act: 'Do what the line says, or accept it.',
    level: 'warn',
    text: ({ what, advice }) => `${what} ${advice}`,
  },
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
  gateway_ended_unclean: {
    level: { oneOf: ['info', 'warn'], of: ({ end }) => (end === 'aborted' ? 'warn' : 'info') },
    raises: {
      LAST_RUN_ENDED_UNCLEAN: ({ end }) =>
        end === 'unclean'
          ? {
              what: 'The last run did not stop in order. What was acknowledged is in the spool.',
              why: 'It was killed, the machine lost power, or it was version 0.1.0, which leaves no mark of its end.',
              severity: 'info',
              present: 1,
            }
          : {
              what: 'The last run was ended by a fault, by the watchdog of systemd, or twice within ten minutes.',
              why:
                'The watchdog ends a gateway whose event loop stands still. LevelDB and the disk end it where files ' +
                'are damaged; the tables were checked before this start.',
              present: 1,
            },
    },
  },
  gateway_stopping: {
    meaning: 'The gateway stops.',
    level: 'info',
    text: ({ reason, deadlineMs }) => `Stopping (${reason}), within ${formatDuration(deadlineMs)}.`,
  },
  gateway_stop_overdue: {
    meaning:
      'The stop passed ops.stop_deadline, most likely because the disk hangs. The gateway ends itself by SIGKILL. ' +
      'No acknowledged message is lost.',
    act: 'Check the disk (dmesg, SMART), or the server that the spool is on.',
    level: 'error',
    text: ({ deadlineMs }) =>
      `The stop takes longer than ${formatDuration(deadlineMs)}: something hangs, most likely the disk. The gateway ` +
      'ends itself by SIGKILL. No acknowledged message is lost.',
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

const levels = { info: 'info', warning: 'warn', error: 'error', critical: 'error' } as const

const codeAndKey = ({ code, key }: { code: string; key: string | null }) => `${code}|${key ?? ''}`

/** Of conditions that are states. The others have events of their own. */
export const conditionEvents: EventTable<keyof typeof conditionEventFields> = {
  condition_raised: {
    meaning:
      'A condition was raised, or it became worse: its severity, or one more thing that has the problem.',
    act: 'See the condition.',
    level: { oneOf: ['info', 'warn', 'error'], of: ({ severity }) => levels[severity] },
    text: ({ what }) => what,
    repeats: codeAndKey,
    whyLengthMax: 6000,
  },
  condition_cleared: {
    meaning: 'A condition is over.',
    level: 'info',
    text: ({ code, key, what, lastedMs }) =>
      `${code}${key === null ? '' : ` (${quote(key, 64)})`} is over after ${formatDuration(lastedMs)}. It was: ${what}`,
    repeats: codeAndKey,
  },
}

const refusalTexts: Record<RequestRefusal, string> = {
  host: 'the name in `Host` is not allowed',
  cross_site: 'a browser sent it for a page of another site',
  malformed: 'its target is not a path',
  no_users: 'it would change something, and there are no users',
  no_user: 'it named no user',
  bad_password: 'the user or the password was wrong',
  right: 'the user does not have the right',
  busy: 'too many passwords were being checked',
  limited: 'too many wrong passwords came from the address',
  no_token: 'a browser sent it without the token of its login',
}

/** Wrong passwords within a minute that a person should look at. */
const passwordsMax = 10

export const httpEvents: EventTable<keyof typeof opsEventFields> = {
  change_made: {
    meaning: 'An operator changed something, by a command or over HTTP. The audit log has it, too.',
    level: 'info',
    text: ({ change, by, outcome, request }) =>
      `${sentence(bounded(by, 150)).slice(0, -1)} ran ${quote(change, 100)}` +
      `${request === '' ? '' : ` with ${quote(request, 200)}`}: ${outcome}.`,
  },
  request_refused: {
    meaning: 'Requests on ops.listen were refused. At most one line a minute for each reason.',
    level: 'warn',
    text: ({ reason, count, address, user, path }) =>
      `${plural(count, 'request')} refused. The last one came from ${quote(address, 60)} for ${quote(path, 100)}` +
      `${user === null ? '' : `, user ${quote(user, 64)}`}: ${refusalTexts[reason]}.`,
    raises: {
      HTTP_PASSWORDS_REFUSED: ({ reason, count, address, user }) =>
        (reason !== 'bad_password' && reason !== 'limited') || count < passwordsMax
          ? null
          : {
              what:
                reason === 'limited'
                  ? `${plural(count, 'password')} for ops.listen refused within a minute, after too many wrong ones.`
                  : `${plural(count, 'wrong password')} for ops.listen within a minute.`,
              why: `The last one came from ${quote(address, 60)}, for the user ${quote(user ?? '', 64)}.`,
            },
    },
  },
}
