// device-schemas.ts: the shapes of /devices and /devices/{key}.

import { z } from 'zod'
import { deviceStateNames, deviceStates, type DeviceState } from '../../../domain/device-state.ts'
import { ledgerOutcomes } from '../../../domain/settlement.ts'
import { bytes, count, record, time, timeOrNull, seconds } from '../../status-schema/value-types.ts'

const textOrNull = () => z.string().nullable()

const client = record({
  clientId: z.string().describe('Its MQTT client id.'),
  userName: textOrNull().describe('Its MQTT user.'),
  identity: textOrNull().describe('The name that it proved.'),
  address: textOrNull().describe('From where it connected.'),
  protocol: textOrNull().describe('Protocol of its last connection, as `MQTT 5 over WebSocket with TLS`.'),
  connect: record({
    keepaliveAsked: seconds().describe('Keepalive that it asked for; 0 for none.'),
    keepalive: seconds().describe('Keepalive that it got.'),
    sessionExpiryAsked: seconds().nullable().describe('Session expiry that it asked for; null for never.'),
    sessionExpiry: seconds().nullable().describe('Session expiry that it got; null for never.'),
    cleanStart: z.boolean().describe('It asked for a new session (Clean Start).'),
    sessionPresent: z.boolean().describe('It got its stored session.'),
    receiveMaximum: count().describe('Messages with QoS 1 and 2 that it takes at a time.'),
    topicAliasMaximum: count().describe('Topic aliases that it takes; the gateway sends none.'),
    maximumPacketSize: bytes().nullable().describe('The largest packet that it takes; null for any.'),
    willDelay: seconds().nullable().describe('How long its will waits; null without a will.'),
    userProperties: z
      .record(z.string(), z.string())
      .nullable()
      .describe('Its user properties, cut; the values of those that name a secret are `***`.'),
  })
    .nullable()
    .describe('Properties of its last CONNECT; null before MQTT 5.'),
  certificate: record({ startsAt: time().describe('Valid from.'), endsAt: time().describe('Valid until.') })
    .nullable()
    .describe('Client certificate of its last connection; null without one.'),
  state: z.enum(['connected', 'disconnected', 'lost', 'refused']).describe('What it is now.'),
  since: time().describe('Since when.'),
  willCame: z.boolean().describe('Its will was taken when its last connection ended.'),
  takeOvers: count().describe('How often it connected while its earlier connection was open.'),
  sharedAt: timeOrNull().describe(
    'When it and another client with its id last closed the connection of each other.',
  ),
  sharedFirstAt: timeOrNull().describe('Since when they do that.'),
  refusedMessages: count().describe('Messages that a rule did not allow.'),
  messageRefusedFirstAt: timeOrNull().describe('When the first of them came.'),
  messageRefusedAt: timeOrNull().describe('When the last of them came.'),
  refusedFirstAt: timeOrNull().describe('When its CONNECT was first refused since it connected.'),
  refusedAt: timeOrNull().describe('When its CONNECT was last refused; null where it connected since.'),
  fault: record({
    reason: z.string().describe('Stable code.'),
    detail: z.string().describe('The reason in words.'),
    at: time().describe('When.'),
    count: count().describe('Faults since the start.'),
  })
    .nullable()
    .describe('The last fault.'),
  traffic: record({
    messages: count().describe('Messages that it sent, wills left out.'),
    subscriptions: count().describe('Topic filters that it subscribed to.'),
  }).describe('Of its last connection.'),
  unnamed: record({
    count: count().describe('Messages since it is known.'),
    firstAt: time().describe('When the first of them came.'),
    at: time().describe('When the last of them came. What follows is of this one.'),
    topic: z.string().describe('Its topic.'),
    source: textOrNull().describe('Source that took it; null where none did.'),
    became: z.enum(['ignored', 'dead', 'quarantined']).describe('What became of it.'),
    reason: z.string().describe('Why it gave no payload.'),
    detail: z.string().describe('The reason in words.'),
  })
    .nullable()
    .describe('Its messages that gave no payload and name no device.'),
})

const deviceState = z.enum(deviceStateNames).describe('Whether it sends, and what becomes of it.')

const statesShape = Object.fromEntries(
  deviceStateNames.map((state) => [state, count().describe(deviceStates[state].meaning)]),
) as Record<DeviceState, ReturnType<typeof count>>

const outcomeShape = {
  at: time().describe('When.'),
  requestId: textOrNull().describe('Of the answer of the service.'),
}

const deviceShape = {
  device: z
    .string()
    .describe('Its key; of a client of no known device, its client id or address; of a user, its name.'),
  kind: z.enum(['device', 'client', 'address', 'user']).describe('What the key is.'),
  provider: textOrNull().describe('Its provider.'),
  source: textOrNull().describe('Source of its last message; null where no source took it.'),
  assetId: textOrNull().describe('Its asset; null where the device table does not have it.'),
  listed: z.boolean().describe('Whether it is in the device table.'),
  state: deviceState,
  since: timeOrNull().describe('Since when it has this state.'),
  why: textOrNull().describe('In words; null for a device that sends.'),
  messages: count().describe('Messages since it is known.'),
  messagesPerHour: z.number().min(0).describe('Messages in the last hour.'),
  medianGapMs: z.number().min(0).nullable().describe('Its rhythm: the median time between two messages.'),
  firstSeen: timeOrNull().describe('When its first message came.'),
  lastSeen: timeOrNull().describe('When its last message came.'),
  silentSince: timeOrNull().describe('Since when it is silent, by its rhythm.'),
  mutedUntil: timeOrNull().describe('Until then its silence is no problem: a person said so.'),
  mutedBy: z
    .enum(['person', 'table'])
    .nullable()
    .describe('Where: `devices mute`, or column `muted_until` of the device table; null: nowhere.'),
  skewMs: z
    .number()
    .nullable()
    .describe('Median of arrival minus device time: below zero its clock is ahead.'),
  client: client.nullable().describe('The client that sent its last message.'),
  position: record({
    latitude: z.number().describe('In degrees.'),
    longitude: z.number().describe('In degrees.'),
    at: time().describe('By the device.'),
    arrivedAt: time().describe('When it came.'),
    fixed: z.boolean().describe('Whether it had a fix.'),
  })
    .nullable()
    .describe('The last one; null for assets with a privacy profile.'),
  lastAccepted: record(outcomeShape).nullable().describe('The last payload that the service accepted.'),
  lastRefused: record({
    ...outcomeShape,
    outcome: z.enum(['retried', 'dead']).describe('What became of it.'),
    times: count().describe('Payloads that the service refused since it accepted one.'),
    reason: textOrNull().describe('Stable code, or type of the error of the service.'),
    detail: textOrNull().describe('The reason in words.'),
  })
    .nullable()
    .describe('The last payload that the service refused.'),
  duplicates: count().describe('Payloads that came again.'),
  ignored: count().describe('Messages that the config ignores.'),
  deadLetters: count().describe('Messages that became dead letters.'),
  quarantined: count().describe('Messages that went to quarantine.'),
  reasons: z
    .array(
      record({
        kind: z.enum(['ignored', 'dead', 'quarantined']).describe('What became of the messages.'),
        source: textOrNull().describe('Source that took them.'),
        reason: z.string().describe('Why.'),
        count: count().describe('Messages.'),
        firstAt: time().describe('The first of them.'),
        lastAt: time().describe('The last of them.'),
      }),
    )
    .describe('Why messages gave no payload.'),
  withheld: z
    .array(
      record({
        source: z.string().describe('Source that took the message.'),
        field: z.string().describe('The field.'),
        reason: z.string().describe('Why.'),
        count: count().describe('Values.'),
        isSent: z.boolean().describe('Whether they were sent nevertheless.'),
        lastValue: z.number().nullable().describe('The last value out of bounds.'),
      }),
    )
    .describe('Values that were omitted, or sent although they are not plausible.'),
}

const messagesByHour = z
  .array(count())
  .nullable()
  .describe('Messages of each of the last 24 hours, the oldest first; the last one is the present hour.')

/** For ages: the one who asks may have another clock. */
export const now = time().describe('When the answer was made, by the time of the gateway.')

const deviceView = record(deviceShape)
export type DeviceView = z.output<typeof deviceView>

const messageOutcome = record({
  ...outcomeShape,
  outcome: z.enum(ledgerOutcomes).describe('What became of it.'),
  batchId: z.string().describe('Its batch.'),
  reason: textOrNull().describe('Of a payload that was not delivered.'),
  detail: textOrNull().describe('The reason in words.'),
})
export type MessageOutcome = z.output<typeof messageOutcome>

const deviceMessage = record({
  at: time().describe('When it came.'),
  topic: z.string().describe('Its topic.'),
  qos: count().describe('Its QoS.'),
  dup: z.boolean().describe('Its flag DUP.'),
  retain: z.boolean().describe('Its flag RETAIN.'),
  message: z.string().optional().describe('Its content, where it is text.'),
  hex: z.string().optional().describe('Its content, where it is no text.'),
  cutBytes: bytes().optional().describe('Bytes that were not kept.'),
  became: z.string().describe('What became of it.'),
  reason: textOrNull().describe('Why it gave no payload.'),
  payloads: z
    .array(
      record({
        payloadId: z.string().describe('The payload.'),
        payload: z.unknown().describe('As the service gets it.'),
        outcomes: z
          .array(messageOutcome)
          .nullable()
          .describe('The newest first; null where the ledger cannot be read.'),
      }),
    )
    .describe('Those that the mapping in force makes of it.'),
  explained: z.unknown().optional().describe('With `explain=1`: value by value.'),
})
export type DeviceMessage = z.output<typeof deviceMessage>

export const devicesSchema = record({
  now,
  total: count().describe('Devices that are listed or were seen, and clients of no device.'),
  seen: count().describe('Devices that sent.'),
  states: record(statesShape).describe('Devices in each state.'),
  restored: z.boolean().describe('Whether what was known before the start has been read.'),
  devices: z
    .array(record({ ...deviceShape, messagesByHour: messagesByHour.optional() }))
    .describe('In the order that was asked for.'),
  more: z.boolean().describe('There are more than are listed.'),
  clients: z.array(client).describe('Clients with a fault, the latest first.'),
  clientsForgotten: count().describe(
    'Clients without a connection that were forgotten, because there were too many.',
  ),
})

export const deviceSchema = record({
  now,
  ...deviceShape,
  messagesByHour,
  lastMessages: z
    .array(deviceMessage)
    .optional()
    .describe('With `messages=1`: the last ones, the newest first.'),
  lastMessagesSkipped: count().optional().describe('Messages that were not kept, because too many came.'),
})
