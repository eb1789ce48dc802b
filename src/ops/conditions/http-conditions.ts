// http-conditions.ts: the conditions of the HTTP server, the control socket and the audit log.

export const httpConditions = {
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
