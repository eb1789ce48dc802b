// gateway-conditions.ts: the conditions of the gateway as a whole: of devices and their mapping, of the
// process, of the HTTP server and the audit log, and of alerts.

import { zonedTime } from '../../std/clock.ts'
import type { GatewayError } from '../../std/gateway-error.ts'
import { plural } from '../../std/quantity.ts'
import { bounded, listText, quote } from '../../std/quote.ts'
import { coded, ofFault, sentence } from '../../domain/events/event-text.ts'
import type { Cause } from '../../domain/cause.ts'
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
    isOfStart: true,
  },
  HTTP_PASSWORDS_REFUSED: {
    severity: 'warning',
    meaning: 'Many requests on ops.listen had a wrong password.',
    act: 'See `request_refused` in the log for their address. Block it, or correct the password there.',
    quietMs: 600_000,
  },
} as const

type SelfCode =
  | 'LISTENER_FAILED'
  | 'HTTP_LISTENER_FAILED'
  | 'TLS_HANDSHAKES_FAIL'
  | 'MAPPING_STALE'
  | 'ACCESS_STALE'
  | 'RESTART_NEEDED'
  | 'CLOCK_UNKNOWN'
  | 'LEDGER_UNAVAILABLE'
  | 'CONTROL_SOCKET_FAILED'
  | 'AUDIT_LOG_FAILED'
  | 'CERTIFICATE_EXPIRES'
  | 'CLIENT_CERTIFICATES_EXPIRE'
  | 'ALERTS_FAILING'

export const selfConditions: ConditionTable<SelfCode> = {
  LISTENER_FAILED: {
    severity: 'critical',
    stops: 'receiving',
    meaning:
      'Devices cannot connect to one of the listeners: its port is taken, or its address cannot be used. It is opened as ' +
      'soon as it can be. `error` where others are open, or a bridge is connected.',
    act: 'See the error in the condition.',
    cause: ({ listener, fault, isShut }) => ({
      ...coded(fault),
      key: listener,
      ...(isShut ? {} : { severity: 'error', stops: null }),
    }),
  },
  HTTP_LISTENER_FAILED: {
    severity: 'error',
    meaning:
      'The page, /status, /metrics and the health checks cannot be reached, because ops.listen cannot be opened. Commands ' +
      'use the control socket and work. It is opened as soon as it can be.',
    act: 'See the error in the condition.',
    cause: ({ listener, fault }) => ({ ...coded(fault), key: listener }),
  },
  TLS_HANDSHAKES_FAIL: {
    severity: 'warning',
    meaning:
      'Connections to an mqtts:// or wss:// listener fail before their CONNECT: 5 or more within 30 minutes, and none succeeded ' +
      'since. Devices that connect there cannot send.',
    act:
      'Look at the reason. `doctor` checks the certificate of the listener: its dates and host names. Run `devices`: ' +
      'it lists the addresses with their reasons. If they are none of yours, block them in the firewall.',
    quietMs: 1_800_000,
    cause: ({ listener, detail, count, top }) => ({
      key: listener,
      what: `No client gets through TLS on ${listener}: ${plural(count, 'connection')} failed, none succeeded since.`,
      why: `The last one: ${sentence(detail)} Most are of ${top.map((each) => quote(each, 80)).join(', ')}.`,
      present: count,
    }),
  },
  MAPPING_STALE: {
    severity: 'error',
    meaning: 'The changed config or device table has errors. The previous mapping stays in force.',
    act: 'Correct the listed errors. The gateway reads the files again as soon as they change.',
    cause: ({ fault }) => staleOf(fault, 'The previous mapping stays in force.'),
  },
  ACCESS_STALE: {
    severity: 'error',
    meaning:
      'A changed password file or certificate cannot be used, or would end most connections. The former users or ' +
      'certificates stay in force.',
    act: 'Correct the file in the condition. The gateway reads the files again as soon as they change.',
    cause: ({ fault }) => staleOf(fault, 'The former ones stay in force.'),
  },
  RESTART_NEEDED: {
    severity: 'warning',
    meaning: 'The config changed in options that need a restart. Until then the old settings are in force.',
    act: 'Restart the gateway. No data is lost.',
    cause: ({ options }) => ({
      what: `The config changed in ${listText(options)}. The old settings are in force there.`,
      why:
        'These options take effect at the start only. All other changes are in force. Where an address changed ' +
        'to which secrets belong, its section waits as a whole.',
      causes: options,
    }),
  },
  CLOCK_UNKNOWN: {
    severity: 'warning',
    meaning: 'It is not known whether the clock of this machine is right. Device times are not checked.',
    act:
      'Let the operating system synchronise the clock (timedatectl, chrony). If it is kept right in another ' +
      'way, set clocks.trust_local. The time of the service is used as soon as it answers.',
    cause: () => ({
      why: 'No time service is known to synchronise it, and the ingestion API has not answered yet.',
    }),
  },
  LEDGER_UNAVAILABLE: {
    severity: 'warning',
    meaning: 'The ledger cannot be written or read. Delivery is not affected.',
    act: 'See the error in the condition.',
    cause: ofFault,
  },
  CONTROL_SOCKET_FAILED: {
    severity: 'error',
    meaning: 'The control socket cannot be opened. Commands that change something do not work.',
    act: 'Make its directory writable for the user of the daemon, or set ops.control_socket.',
    cause: ofFault,
  },
  AUDIT_LOG_FAILED: {
    severity: 'error',
    meaning:
      'The audit log cannot be written. Changes are carried out, and are in the log of the daemon. Their lines are written ' +
      'as soon as that is possible.',
    act: 'Check the disk and the permissions of spool.path. It is tried again every ten seconds.',
    cause: ({ path, why }) => ({ what: `Cannot write the audit log in ${path}.`, why: sentence(why) }),
  },
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
  CLIENT_CERTIFICATES_EXPIRE: {
    severity: 'warning',
    meaning:
      'Certificates of devices expire within 30 days, or expired in the last 30 days. If a certificate is valid for less ' +
      'than 90 days, a third of its lifetime is used in place of the 30 days. The gateway looks at the certificate of the ' +
      'last connection of each client. It refuses a device whose certificate has expired.',
    act:
      'Give these devices new certificates. A connection with the new one ends the problem of a device. One that is gone ' +
      'for good leaves the list after the same time.',
    cause: ({ clients, total, expired }) => {
      const shown = clients.map(({ clientId, endsAt }) => `${quote(clientId, 40)} ${zonedTime(endsAt)}`)
      const list = listText(shown, { total, lengthMax: 240 })
      return {
        what: `Client certificates end soon, or have ended: ${list}.`,
        why:
          expired === 0
            ? 'None has ended yet.'
            : `${expired} of ${total} have ended: these devices do not get in.`,
        severity: expired === 0 ? 'warning' : 'error',
        present: total,
        causes: clients.map(({ clientId }) => clientId),
      }
    },
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

/** Some fifty problems of a config or a device table, each with its place. */
const problemsLengthMax = 6000

/** Another problem is news, also where the first one is corrected. */
function staleOf({ what, why, act }: GatewayError, inForce: string): Cause {
  return {
    what: `${what} ${inForce}`,
    why,
    act: `${act} The gateway reads the files again as soon as they change.`,
    whyLengthMax: problemsLengthMax,
    causes: [why],
  }
}
