// client-conditions.ts: the conditions of clients that were disconnected at a limit of the gate.

const hourMs = 3_600_000

export const clientConditions = {
  CONTROL_PACKETS_LIMITED: {
    severity: 'warning',
    meaning: 'Clients sent more control packets than ingest.broker.limits.max_control_packets_per_s.',
    act:
      'Find the client by the address in the log (client_dropped). If it is one of yours, correct it, or raise ' +
      'the limit. If not, block its address.',
    quietMs: hourMs,
  },
  PARTIAL_PACKETS_FULL: {
    severity: 'warning',
    meaning:
      'Packets whose end did not arrive used all of ingest.broker.limits.max_partial_bytes. Connections of the ' +
      'address that used the most were closed. Their devices connect and send again.',
    act:
      'Look at the address. If your devices send many large packets at once over slow links, raise the limit. If ' +
      'not, block the address.',
    quietMs: hourMs,
  },
} as const
