// gateway-conditions.ts: the conditions of the gateway as a whole: of devices and their mapping, of the
// process, of the HTTP server and the audit log, and of alerts.

import { bounded } from '../../std/quote.ts'
import { sentence } from '../events/event-text.ts'
import type { ConditionTable } from './types.ts'

const dayMs = 86_400_000

export const gatewayConditions = {
  LAST_RUN_ENDED_UNCLEAN: {
    severity: 'warning',
    meaning:
      'The last run of the gateway did not stop in order. `info` for a kill or a power cut, `warning` for a fault or ' +
      'the watchdog.',
    act: 'Look for the cause: `journalctl -u telemetry-gateway` before the start, `dmesg` for the disk and memory.',
    quietMs: dayMs,
  },
  RESTART_NEEDED: {
    severity: 'warning',
    meaning: 'The config changed in options that need a restart. Until then the old settings are in force.',
    act: 'Restart the gateway. No data is lost.',
  },
  DEAD_LETTERS_WAITING: {
    severity: 'warning',
    meaning: 'Dead letters from before the start of the gateway wait for a decision.',
    act: 'Run `dead-letters list` to see the causes. Correct the cause and requeue, or purge them.',
  },
  CONTROL_SOCKET_FAILED: {
    severity: 'error',
    meaning: 'The control socket cannot be opened. Commands that change something do not work.',
    act: 'Make its directory writable for the user of the daemon, or set ops.control_socket.',
  },
  AUDIT_LOG_FAILED: {
    severity: 'error',
    meaning:
      'The audit log cannot be written. Changes are carried out, and are only in the log of the daemon.',
    act: 'Check the disk and the permissions of spool.path. It is tried again with the next change.',
  },
  HTTP_PASSWORDS_REFUSED: {
    severity: 'warning',
    meaning: 'Many requests on ops.listen had a wrong password.',
    act: 'See `request_refused` in the log for their address. Block it, or correct the password there.',
    quietMs: 600_000,
  },
} as const

export const selfConditions: ConditionTable<'CERTIFICATE_EXPIRES' | 'ALERTS_FAILING'> = {
  CERTIFICATE_EXPIRES: {
    severity: 'warning',
    meaning:
      'A certificate in the config ends within 14 days, or has expired (`error`): of a listener, its client ' +
      'authorities, ops, a bridge or the delivery. With an expired one, devices or the other side refuse to connect.',
    act:
      'Renew it in the file that the config names. The gateway takes it over within seconds (`reload` does it at once). ' +
      'Where RESTART_NEEDED names an option of its section, it may need the restart.',
    cause: ({ certificate, detail, endsSoon }) => ({
      key: certificate,
      what: bounded(detail, 300),
      why: endsSoon ? 'It ends within 14 days.' : 'Connections that need it are refused.',
      severity: endsSoon ? 'warning' : 'error',
    }),
  },
  // Nothing is late or lost by this one.
  ALERTS_FAILING: {
    severity: 'warning',
    meaning:
      'A receiver of alerts or a heartbeat cannot be reached. What it does not know yet is sent when it can be reached.',
    act: 'See the reason. Correct the receiver in the section `alerts`, then run `telemetry-gateway alerts test`.',
    cause: ({ receiver, failures, why, act }) => ({
      key: receiver,
      what:
        failures === 0
          ? `Some recipients of ${receiver} get no alerts.`
          : `The receiver ${receiver} gets no alerts: ${failures} tries in a row failed.`,
      why: sentence(why),
      act: failures === 0 ? act : `${sentence(act)} Then run \`telemetry-gateway alerts test ${receiver}\`.`,
      present: Math.max(1, failures),
    }),
  },
}
