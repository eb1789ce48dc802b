// state-schema.ts: the parts of /status that say how things are now: spool, devices, clients, ledger, clock.

import { z } from 'zod'
import { deviceStateNames, deviceStates, stateKey, type StateNumbers } from '../../domain/device-state.ts'
import { keptStoreNames } from '../../domain/kept-store.ts'
import { bytes, count, record, seconds, time, timeOrNull } from './value-types.ts'

export const waiting = record({
  heldMessages: count().describe(
    'Messages that wait without an acknowledgement, because they cannot be stored.',
  ),
  openMessages: count().describe('Messages that wait to become one payload with others.'),
}).describe('Messages that wait in memory now.')

export const spool = record({
  hold: z
    .string()
    .nullable()
    .describe('Why all acknowledgements are held: spool full, disk low, store lost. Null: they are not.'),
  bytes: bytes().describe('JSON bytes of the payloads in the lanes.'),
  bytesMax: bytes().nullable().describe('Limit of the spool on the disk (spool.max_bytes).'),
  diskBytes: bytes().describe('Its files on the disk, as last measured.'),
  freeBytes: bytes().nullable().describe('Free on its file system, as last measured; null before.'),
  freeBytesMin: bytes().describe('Below this, acknowledgements are held (spool.min_free_bytes).'),
  secondsToFull: seconds()
    .nullable()
    .describe(
      'Until it is full, or its disk low, if it grows as in the last 10 minutes (the disk: as in the last hour); null: it does not grow, or that is not known.',
    ),
  fullFirst: z
    .enum(['spool', 'disk'])
    .nullable()
    .describe('What is full first: the spool (`bytesMax`), or its disk (`freeBytesMin`).'),
  secondsToFullWhy: z.string().nullable().describe('Why `secondsToFull` is null.'),
  deadLetters: count().describe('Dead letters in it now.'),
  quarantined: count().describe('Messages in quarantine now.'),
  deferred: count().describe('Messages that a version before 0.2 deferred, and that are being mapped.'),
  deadLettersFull: z
    .boolean()
    .describe('Messages that would become dead letters wait without an acknowledgement.'),
  stores: z
    .array(
      record({
        store: z.enum(keptStoreNames).describe('The store.'),
        bytes: bytes().describe('Its size.'),
        bytesMax: bytes().describe('Its limit.'),
        onFull: z
          .enum(['hold', 'drop_oldest'])
          .describe(
            'What happens at the limit: messages wait without an acknowledgement, or the oldest are deleted.',
          ),
        devices: count().describe('Devices that have something in it.'),
        clients: count().describe('Clients that have something in it.'),
      }),
    )
    .describe('Kept messages and dead letters.'),
}).describe('The spool on the disk. The lanes have its payloads.')

export const skewedDevice = record({
  device: z.string().describe('Its key.'),
  assetId: z.string().nullable().describe('Its asset; null where the device table does not have it.'),
  listed: z.boolean().describe('Whether it is in the device table.'),
  messages: count().describe('Messages of it, since it is known.'),
  lastSeen: timeOrNull().describe('When its last message came.'),
  skewMs: z
    .number()
    .nullable()
    .describe('Arrival minus device time, in the middle: below zero its clock is ahead.'),
})

const stateShape = Object.fromEntries(
  deviceStateNames.map((state) => [stateKey(state), count().describe(deviceStates[state].meaning)]),
) as { [Key in keyof StateNumbers]: ReturnType<typeof count> }

export const devices = record({
  known: count().describe('Devices with a record: listed, seen or refused.'),
  listed: count().describe('Rows of the device table.'),
  seen: count().describe('Devices of which a message is known.'),
  ...stateShape,
  total: count().describe('Devices that are listed, were seen or were refused, and clients of no device.'),
  checkedAt: timeOrNull().describe('When the devices were last counted.'),
  skewed: z.array(skewedDevice).describe('The worst clocks.'),
}).describe('Devices, as they are now. /devices lists them.')

const failures = z.array(
  record({
    name: z.string().describe('The address or user.'),
    failures: count().describe('Wrong passwords since the start.'),
  }),
)

export const clients = record({
  connections: count().describe('Open connections of clients.'),
  storedSessions: count().describe('Sessions of clients that connect without Clean Session.'),
  authentication: record({
    failures: count().describe('Wrong passwords since the start.'),
    addresses: failures.describe('The addresses with most.'),
    users: failures.describe('The users with most.'),
  }).describe('Wrong passwords.'),
  refusedMessages: z
    .array(
      record({
        identity: z.string().nullable().describe('The identity; null for anonymous clients.'),
        reason: z.string().describe('The rule, as a code.'),
        messages: count().describe('Messages since the start.'),
      }),
    )
    .describe('Messages that a rule did not allow. At most 200.'),
}).describe('Clients of the embedded broker.')

export const messageSource = record({
  name: z.string().describe('Its name: `broker` is the embedded broker, the others are in ingest.bridges.'),
  kind: z
    .enum(['broker', 'mqtt', 'amqp', 'jetstream'])
    .describe('The embedded broker, or a bridge: to an MQTT broker, RabbitMQ or NATS.'),
  url: z.string().nullable().describe('Address of the broker of a bridge.'),
  connectedAt: timeOrNull().describe(
    'When the last of its connections was opened; null: one of them is not open, or it is the embedded broker.',
  ),
  silent: z.boolean().describe('Connected, and without a message for longer than silent_after.'),
  messages: count().describe('Messages of it since the start.'),
  acked: count().describe('Messages that were acknowledged.'),
  outstanding: count().describe('Messages that wait for their acknowledgement.'),
  window: count().describe('Messages of a connection that may be outstanding at most.'),
  redelivered: count()
    .nullable()
    .describe('Messages that the broker had delivered before; null: not counted.'),
  propertiesSkipped: count()
    .nullable()
    .describe(
      'Properties and headers of messages that the mapping does not get: a message has more than 64 of them, or ' +
        'more than 16 KiB; null: not counted.',
    ),
  retainedIgnored: count().describe('Retained messages that were ignored.'),
  lag: count()
    .nullable()
    .describe(
      'Messages that wait at the server, for all members of the group; null where it does not say. MQTT has no way to ask.',
    ),
  lastMessageAt: timeOrNull().describe('When its last message came; null for the embedded broker.'),
  connections: z
    .array(
      record({
        clientId: z.string().describe('Its client id at the broker.'),
        state: z
          .enum(['connecting', 'connected', 'waiting', 'paused', 'stopped'])
          .describe(
            '`waiting`: for the next try. `paused`: the spool takes nothing in, and the broker queues.',
          ),
        since: time().describe('Since when it has this state.'),
        sessionPresent: z
          .boolean()
          .nullable()
          .describe(
            'Whether the broker had kept the session at the last connection; null before the first, and where there is ' +
              'none.',
          ),
        messages: count().describe('Messages that it brought, since the start.'),
        losses: count().describe('Connections and tries that ended, since the start.'),
        lastFault: z.string().nullable().describe('Why the last one ended; null while it is connected.'),
      }),
    )
    .describe('The connections of a bridge.'),
  partitions: z
    .array(
      record({
        partition: z.string().describe('Name of the queue of RabbitMQ, or of the durable consumer of NATS.'),
        member: z.string().describe('Name of this gateway in the group.'),
        role: z
          .enum(['active', 'standby'])
          .nullable()
          .describe(
            '`active`: this gateway gets its messages, `standby`: another one does; null where that is not known.',
          ),
        outstanding: count().describe('Messages of it that wait here for their acknowledgement.'),
        lag: count()
          .nullable()
          .describe('Messages of it that wait at the server; null where it does not say.'),
      }),
    )
    .describe('The queues of a bridge to RabbitMQ or NATS, which gateways share. Empty for others.'),
}).describe('Where messages come from.')

export const clock = record({
  known: z.boolean().describe('Whether the time is known. Until then device times are not judged.'),
  by: z
    .enum(['kernel', 'config', 'devices', 'service'])
    .nullable()
    .describe('By what: the operating system, `clocks.trust_local`, the devices, or the service.'),
  offsetMs: z.number().nullable().describe('True time minus the clock of this machine.'),
  isDisputed: z
    .boolean()
    .describe('The clock of this machine counts as right, and the service says otherwise.'),
}).describe('The time of the gateway.')

export const ledger = record({
  open: z.boolean().describe('Whether it can be asked.'),
  records: count().describe('Records in it.'),
  bytes: bytes().describe('Its size.'),
  bytesMax: bytes().describe('Its limit (ledger.max_bytes).'),
  oldestAt: timeOrNull().describe('Time of its oldest entry.'),
  behind: count().describe('Receipts that wait to be copied into it.'),
  behindBytes: bytes().describe('Their size.'),
  dropped: count().describe('Payloads deleted at the limit, since the start.'),
  expired: count().describe('Payloads deleted by age, since the start.'),
  missed: count().describe('Receipts that the spool had no room for, since the start.'),
  damaged: count().describe('Receipts that could not be read, since the start.'),
  reread: count().describe('Receipts read from the disk to be copied, since the start.'),
})
  .nullable()
  .describe('The ledger; null where none is kept.')

export const custody = record({
  outstanding: count().describe('Messages that are in the spool and not acknowledged to the engine.'),
  oldestSeconds: seconds().nullable().describe('Age of the oldest of them; null for none.'),
  waitsFor: z
    .string()
    .nullable()
    .describe('The batch, lane or shelf that the oldest waits for; null for none.'),
  holds: z.boolean().describe('Nothing is taken, because the ingestion API accepts nothing.'),
  parked: count().describe('Payloads and messages that were parked in the engine.'),
  takenBack: count().describe('Those that came back.'),
  parkedDuplicates: count().describe('Those that the engine delivered again and that were known.'),
  refusedEntries: count().describe(
    'Parked entries that could not be read, or whose provider is not in the config. They are dead letters.',
  ),
  parkedAndReleased: count().describe(
    'Messages that were released while they were being parked: they come twice.',
  ),
  waitingEntries: count().describe('Parked entries that wait here for their turn.'),
  copied: count().describe('Dead letters that were copied to the engine.'),
  storeFailures: count().describe('Tries to store in the engine that failed.'),
}).describe('Custody `delivered`, since the start.')
