// internals-schema.ts: the part of /status for engineers: counters that prove each other, and bounds inside.

import { z } from 'zod'
import { bytes, count, record } from './value-types.ts'

const difference = z.int().describe('What is not accounted for; 0 is right.')

const conservation = record({
  messages: record({
    received: count().describe('Messages received.'),
    carried: count().describe('Open messages read from the disk at a restore.'),
    split: count().describe(
      'Further results of messages of several vehicles whose records became different things.',
    ),
    accounted: count().describe('Messages of which it is known what became of them.'),
    difference,
  }).describe('A short difference is normal, while messages wait for their commit.'),
  payloads: record({
    recovered: count().describe('Payloads in the spool when it was opened.'),
    appended: count().describe('Payloads stored since.'),
    gone: count().describe('Payloads delivered, dead or damaged.'),
    open: count().describe('Payloads in the lanes.'),
    difference,
  }).describe('The same for payloads.'),
  lanes: z
    .array(
      record({
        id: count().describe('The lane.'),
        appended: count().describe('Payloads stored in it.'),
        settled: count().describe('Payloads that left it.'),
        open: z.int().describe('Payloads in it, counted by its chunks.'),
        difference,
      }),
    )
    .describe('The same for each lane.'),
}).describe('Whether every message and payload is accounted for.')

export const internals = record({
  conservation,
  congested: z.boolean().describe('The disk is slow: background work waits.'),
  partialPacketBytes: bytes().describe('Memory of packets whose end has not arrived.'),
  passwordsWaiting: count().describe('Passwords that wait to be checked.'),
  refusalsDelayed: count().describe('Refusals that are held back after wrong passwords.'),
  sessionsEvicted: count().describe('Stored sessions deleted to make room, since the start.'),
  sessionsExpired: count().describe('Stored sessions deleted by age, since the start.'),
  plausibility: record({
    devices: count().describe('Devices with values that are not plausible.'),
    swapped: count().describe('Devices whose latitude and longitude look swapped.'),
    fleet: count().describe('Devices that make up the fleet.'),
    beyond: count().describe('Values and comparisons of devices beyond these bounds.'),
  }).describe('What the plausibility check remembers.'),
}).describe('For engineers. These may change with each version.')
