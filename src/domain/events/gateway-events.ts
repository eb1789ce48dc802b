// gateway-events.ts: the events of the life cycle (start, ready, stop), of changes by operators, and of the
// HTTP server.

import { zonedTime, type EpochMs } from '../../std/clock.ts'
import { formatDuration, plural } from '../../std/quantity.ts'
import { bounded, quote } from '../../std/quote.ts'
import type { Severity } from '../cause.ts'
import { batchId, count, event, field, payloads, provider, tookMs, why } from './events.ts'
import { forProvider, sentence } from './event-text.ts'

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
const severity = field<Severity>('how bad it is')
const what = field<string>('what is wrong, or was')

export const gatewayEvents = {
  config_warning: event({
    fields: { what: field<string>('what the config allows'), advice: field<string>('what to do') },
    meaning: 'The config is valid and allows something that a person should know. `check` shows the same.',
    act: 'Do what the line says, or accept it.',
    level: 'warn',
    text: ({ what, advice }) => `${what} ${advice}`,
  }),
  gateway_starting: event({
    fields: {
      version: field<string>('version of the gateway'),
      pid: field<number>('process id'),
      config: field<string>('path of the config file'),
    },
    meaning: 'The gateway starts.',
    level: 'info',
    text: ({ version }) => `Telemetry gateway ${version} starts.`,
  }),
  gateway_ready: event({
    fields: {
      tookMs,
      addresses: field<readonly string[]>('addresses of the listeners, of ops, and of the control socket'),
    },
    meaning: 'The gateway is ready: devices can publish.',
    level: 'info',
    text: ({ tookMs }) => `Ready after ${formatDuration(tookMs)}.`,
  }),
  gateway_ended_unclean: event({
    fields: {
      end: field<'unclean' | 'aborted'>(
        '`aborted`: by a signal of a fault or of the watchdog, or twice within ten minutes',
      ),
      lastWriteAt: field<EpochMs | null>(
        'when that run wrote last, as its files say; null where that is not known',
      ),
      downMs: field<number | null>('time from then to this start'),
    },
    level: { oneOf: ['info', 'warn'], of: ({ end }) => (end === 'aborted' ? 'warn' : 'info') },
    raises: {
      LAST_RUN_ENDED_UNCLEAN: ({ end, lastWriteAt, downMs }) =>
        end === 'unclean'
          ? {
              what: `The last run did not stop in order. What was acknowledged is in the spool.${endedText(lastWriteAt, downMs)}`,
              why: 'It was killed, the machine lost power, or it was version 0.1.0, which leaves no mark of its end.',
              severity: 'info',
              present: 1,
            }
          : {
              what: `The last run was ended by a fault, by the watchdog of systemd, or twice within ten minutes.${endedText(lastWriteAt, downMs)}`,
              why:
                'The watchdog ends a gateway whose event loop stands still. LevelDB and the disk end it where files ' +
                'are damaged; the tables were checked before this start.',
              present: 1,
            },
    },
  }),
  gateway_stopping: event({
    fields: {
      reason: field<string>('signal or error that stops the gateway'),
      deadlineMs: field<number>('longest time that the stop takes, in ms'),
    },
    meaning: 'The gateway stops.',
    level: 'info',
    text: ({ reason, deadlineMs }) => `Stopping (${reason}), within ${formatDuration(deadlineMs)}.`,
  }),
  gateway_stop_overdue: event({
    fields: { deadlineMs: field<number>('longest time that the stop takes, in ms') },
    meaning:
      'The stop passed ops.stop_deadline, most likely because the disk hangs. The gateway ends itself by SIGKILL. ' +
      'No acknowledged message is lost.',
    act: 'Check the disk (dmesg, SMART), or the server that the spool is on.',
    level: 'error',
    text: ({ deadlineMs }) =>
      `The stop takes longer than ${formatDuration(deadlineMs)}: something hangs, most likely the disk. The gateway ` +
      'ends itself by SIGKILL. No acknowledged message is lost.',
  }),
  gateway_stopped: event({
    fields: {
      tookMs,
      pending: field<number | null>('payloads in the spool; null where it was not open'),
    },
    meaning: 'The gateway has stopped. Payloads in the spool are delivered after the next start.',
    level: 'info',
    text({ tookMs, pending }) {
      const spool =
        pending === null ? 'The spool was not open.' : `${plural(pending, 'payload')} in the spool.`
      return `Stopped after ${formatDuration(tookMs)}. ${spool}`
    },
  }),
}

export const operatorEvents = {
  operator_action: event({
    fields: {
      action: field<string>('subcommand of `batches`; `discard` for `drop --discard`'),
      by: field<string>('who, as the command reports it: OS user, and SUDO_USER'),
      selection: field<string>('batchIds or options that selected the batches'),
      batches: count('batches that were changed'),
      payloads,
      newBatches: count('new batches that replace them'),
      skipped: count('selected batches that stay as they are'),
    },
    meaning: 'An operator changed sealed batches with `batches`.',
    level: 'info',
    text({ action, by, selection, batches, payloads, newBatches, skipped }) {
      const what = `${plural(batches, 'batch', 'batches')} with ${plural(payloads, 'payload')}`
      const made = newBatches > 0 ? `, ${plural(newBatches, 'new batch', 'new batches')}` : ''
      const left = skipped > 0 ? `, ${skipped} skipped` : ''
      return `Operator ${bounded(by, 100)} ran \`batches ${action}\` on ${bounded(selection, 200)}: ${what}${made}${left}.`
    },
  }),
  payloads_discarded: event({
    fields: { provider, batchId, payloads, by: field<string>('who discarded it') },
    meaning: 'An operator discarded a batch with `batches drop --discard`. Its payloads are lost.',
    level: 'error',
    text: ({ provider, batchId, payloads, by }) =>
      `Operator ${bounded(by, 100)} discarded batch ${batchId}${forProvider(provider)}: ` +
      `${plural(payloads, 'payload')} lost.`,
  }),
}

const levels = { info: 'info', warning: 'warn', error: 'error', critical: 'error' } as const

const codeAndKey = ({ code, key }: { code: string; key: string | null }) => `${code}|${key ?? ''}`

/** Of conditions that are states. The others have events of their own. */
export const conditionEvents = {
  condition_raised: event({
    fields: {
      code: conditionCode,
      key: conditionKey,
      severity,
      what,
      why,
      act: field<string>('what to do'),
    },
    meaning:
      'A condition was raised, or it became worse: its severity, or one more thing that has the problem.',
    act: 'See the condition.',
    level: { oneOf: ['info', 'warn', 'error'], of: ({ severity }) => levels[severity] },
    text: ({ what }) => what,
    repeats: codeAndKey,
    whyLengthMax: 6000,
  }),
  condition_cleared: event({
    fields: {
      code: conditionCode,
      key: conditionKey,
      severity,
      what,
      lastedMs: field<number>('how long it was open, in ms'),
    },
    meaning: 'A condition is over.',
    level: 'info',
    text: ({ code, key, what, lastedMs }) =>
      `${code}${key === null ? '' : ` (${quote(key, 64)})`} is over after ${formatDuration(lastedMs)}. It was: ${what}`,
    repeats: codeAndKey,
  }),
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

export const httpEvents = {
  change_made: event({
    fields: {
      change: field<string>('path below /control, such as `dead-letters/purge`'),
      request: field<string>('parameters of the request'),
      by: field<string>(
        'who: on the control socket the OS user and SUDO_USER as claimed, over TCP user and address',
      ),
      outcome: field<'done' | 'refused' | 'unknown'>('what became of it'),
      result: field<string>('numbers of the answer, or the error, as JSON'),
      tookMs: field<number>('duration in ms'),
    },
    meaning: 'An operator changed something, by a command or over HTTP. The audit log has it, too.',
    level: 'info',
    text: ({ change, by, outcome, request }) =>
      `${sentence(bounded(by, 150)).slice(0, -1)} ran ${quote(change, 100)}` +
      `${request === '' ? '' : ` with ${quote(request, 200)}`}: ${outcome}.`,
  }),
  request_refused: event({
    fields: {
      reason: field<RequestRefusal>('why the last one was refused'),
      count: count('refused requests with this reason since the last such event'),
      address: field<string>('address of the last one'),
      user: field<string | null>('user that the last one named; null for none'),
      path: field<string>('path of the last one'),
    },
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
  }),
}

function endedText(lastWriteAt: EpochMs | null, downMs: number | null): string {
  if (lastWriteAt === null || downMs === null) return ''
  return ` It wrote last at ${zonedTime(lastWriteAt)}, and nothing ran for ${formatDuration(downMs)} or a little less.`
}
