// internals-facts.ts: the facts for engineers: counters that prove each other, and bounds inside.

import { z } from 'zod'
import { conservationOf } from '../conservation-check.ts'
import { count, fact, flag, group, list } from './fact.ts'
import type { Seen } from './seen.ts'

const difference = fact(z.int().describe('What is not accounted for; 0 is right.'))

const conservation = group(
  'Whether every message and payload is accounted for.',
  ({ stages, recovered }: Seen) => conservationOf(stages, recovered),
  {
    messages: group(
      'A short difference is normal, while messages wait for their commit.',
      ({ messages }) => messages,
      {
        received: count('Messages received.'),
        carried: count('Open messages read from the disk at a restore.'),
        split: count(
          'Further results of messages of several vehicles whose records became different things.',
        ),
        accounted: count('Messages of which it is known what became of them.'),
        difference,
      },
    ),
    payloads: group('The same for payloads.', ({ payloads }) => payloads, {
      recovered: count('Payloads in the spool when it was opened.'),
      appended: count('Payloads stored since.'),
      gone: count('Payloads delivered, dead or damaged.'),
      open: count('Payloads in the lanes.'),
      difference,
    }),
    lanes: list('The same for each lane.', ({ lanes }) => lanes, {
      id: count('The lane.'),
      appended: count('Payloads stored in it.'),
      settled: count('Payloads that left it.'),
      open: fact(z.int().describe('Payloads in it, counted by its chunks.')),
      difference,
    }),
  },
)

export const internals = group('For engineers. These may change with each version.', (seen: Seen) => seen, {
  conservation,
  congested: flag('The disk is slow: background work waits.', null, ({ stages }) =>
    stages.spool?.congested(),
  ),
  partialPacketBytes: count(
    'Memory of packets whose end has not arrived, as max_partial_bytes counts it.',
    'gateway_partial_packet_bytes',
    ({ ingest }) => ingest?.partialBytes,
  ),
  passwordsWaiting: count(
    'Passwords of clients that wait to be checked.',
    'gateway_passwords_waiting',
    ({ ingest }) => ingest?.passwordsWaiting,
  ),
  refusalsDelayed: count(
    'Refusals that are held back after wrong passwords.',
    null,
    ({ ingest }) => ingest?.refusalsDelayed,
  ),
  sessionsEvicted: count(
    'Stored sessions removed at the limit (max_sessions).',
    'gateway_sessions_evicted_total',
    ({ ingest }) => ingest?.sessionsEvicted,
  ),
  sessionsExpired: count(
    'Stored sessions that expired.',
    'gateway_sessions_expired_total',
    ({ ingest }) => ingest?.sessionsExpired,
  ),
  plausibility: group('What the plausibility check remembers.', ({ mapping }) => mapping?.watched, {
    devices: count('Devices with values that are not plausible.'),
    swapped: count('Devices whose latitude and longitude look swapped.', 'gateway_devices_position_swapped'),
    fleet: count('Devices that make up the fleet.'),
    beyond: count(
      'Comparisons of positions, and values that are not plausible, of devices beyond those that are watched.',
      'gateway_devices_not_watched_total',
    ),
  }),
})
