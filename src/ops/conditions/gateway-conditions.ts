// gateway-conditions.ts: the conditions of the gateway as a whole: of devices and their mapping, of the
// process, of the HTTP server and the audit log, and of alerts.

const dayMs = 86_400_000

export const gatewayConditions = {
  DEVICES_SILENT: {
    severity: 'warning',
    stops: 'receiving',
    meaning:
      'No device of the whole gateway sends for longer than usual (ops.silence). In quiet hours its severity is ' +
      '`info`.',
    act:
      'Check the network of the depot, and that devices can reach the listeners or the broker of the bridge (`status` ' +
      'shows the addresses). ' +
      '`devices` shows who sent last.',
  },
  DEVICE_SILENT: {
    severity: 'warning',
    meaning: 'Single devices are silent for longer than ops.silence.device_after, while others send.',
    act:
      'Run `devices show KEY` for what is known of it. Where its silence is no fault, run `devices mute KEY --for 7d`, ' +
      'or `devices forget KEY` where it is gone.',
  },
  FLEET_PART_SILENT: {
    severity: 'warning',
    meaning:
      'At least five devices with something in common, and most of those that have it, fell silent at once. Other ' +
      'devices send.',
    act: 'Check what they have in common: a router, a link, a site.',
  },
  NOTHING_MAPPED: {
    severity: 'warning',
    meaning: 'Devices send, and none of their messages becomes a new payload.',
    act:
      'Use `tap` to see the messages, and `map --explain` with one of them. Check topics and sources of the ' +
      'config, and the device table. Where the messages are duplicates, see DEVICES_REPEATING.',
  },
  DEVICES_REPEATING: {
    severity: 'warning',
    meaning:
      'Devices send the same messages again and again: each is a duplicate, which is acknowledged and not delivered. ' +
      '`info` where they are less than a tenth of the devices that send.',
    act:
      'Run `devices --state repeating`, and `devices show KEY` for one of them. Check its clock, its receiver and its ' +
      'firmware: the time and the values of its messages do not change. Nothing where it is parked and repeats its ' +
      'last fix.',
  },
  DEVICES_NOT_MAPPED: {
    severity: 'warning',
    meaning:
      'Devices send, and their messages give no payload, while those of other devices do. `info` where the ' +
      'mapping ignores what they send, or where they are less than a tenth of the devices that send, and none of them ' +
      'was mapped before.',
    act:
      'Run `devices --state not_mapped`, and `devices show KEY` for one of them. Correct the source, or add the device ' +
      'to the table.',
  },
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

  // Nothing is late or lost by this one.
  ALERTS_FAILING: {
    severity: 'warning',
    meaning:
      'A receiver of alerts or a heartbeat cannot be reached. What it does not know yet is sent when it can be reached.',
    act: 'See the reason. Correct the receiver in the section `alerts`, then run `telemetry-gateway alerts test`.',
  },
} as const
