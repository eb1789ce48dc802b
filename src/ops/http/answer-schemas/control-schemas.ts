// control-schemas.ts: what the changes below /control report.

import { z } from 'zod'
import { bytes, count, record, time, timeOrNull } from '../../status-schema/value-types.ts'

const textOrNull = () => z.string().nullable()
const dryRun = z.boolean().describe('Nothing was changed: this is what would be done.')
/** Names are reasons, some of them of the config. */
const byReason = (what: string) => z.record(z.string(), count()).describe(`${what}, by reason.`)

export const reloadSchema = record({
  kind: z.literal('reloaded').describe('What was done.'),
  sources: count().describe('Sources in force.'),
  tookMs: z.number().min(0).describe('How long it took.'),
  restartNeeded: z.array(z.string()).describe('Changed options that take effect at a restart.'),
  warnings: z
    .array(z.string())
    .describe('Certificates that have expired, are not valid yet, or end within 30 days.'),
})

export const probeSchema = record({
  now: time().describe('When the try had ended.'),
  providers: z
    .array(
      record({
        name: z.string().describe('The provider.'),
        endpoint: z.enum(['available', 'unavailable', 'unauthorized']).describe('State of its endpoint.'),
        since: time().describe('Since when.'),
        lastRequestId: textOrNull().describe('Of the last answer.'),
        lastAcceptedAt: timeOrNull().describe('When the service last accepted a payload, since the start.'),
        clockOffsetMs: z.number().nullable().describe('Clock of the service minus ours.'),
        nextAttemptAt: timeOrNull().describe('When the next submission may start; null: now.'),
        inFlight: count().describe('Submissions that run now.'),
        settling: count().describe('Accepted batches whose settle is not on the disk yet.'),
        payloadsPerSecond: z.number().min(0).describe('Payloads accepted, over the last minute.'),
      }),
    )
    .describe('After the try.'),
})

export const forgetSchema = record({
  device: z.string().describe('The device.'),
  signal: textOrNull().describe('The only signal that was forgotten; null: all.'),
  forgotten: count().describe('Values that the mapping remembered.'),
  records: count().describe('Records of the device.'),
  ledgerEntries: count().optional().describe('With `ledger=1`: entries that were deleted.'),
})

export const kickSchema = record({
  name: z.string().describe('The client id, user or address.'),
  closed: count().describe('Connections that were closed.'),
})

export const acceptSchema = record({
  device: z.string().describe('The device.'),
  file: z.string().describe('The device table.'),
  quarantined: count().describe('Messages of it that were in quarantine.'),
})

export const muteSchema = record({
  device: z.string().describe('The device.'),
  mutedUntil: timeOrNull().describe('Until when its silence is no problem; null: it is one.'),
  records: count().describe('Records of the device.'),
})

export const acknowledgeSchema = record({
  code: z.string().describe('The condition.'),
  key: textOrNull().describe('Its key.'),
  untilAt: timeOrNull().describe('Until then it is not sent again; null: it is, or is over.'),
})

export const pastConditionsSchema = record({
  conditions: z
    .array(
      record({
        code: z.string().describe('Stable code.'),
        key: textOrNull().describe('What it was about.'),
        severity: z.string().describe('How bad it was.'),
        since: timeOrNull().describe('When it began.'),
        clearedAt: timeOrNull().describe('When it was over.'),
        what: z.string().describe('What was wrong.'),
        interrupted: z
          .enum(['stop', 'spool_lost'])
          .nullable()
          .describe(
            'The gateway stopped, or lost its spool, while it was open, and it did not go on afterwards; ' +
              'null: it was over.',
          ),
      }),
    )
    .describe('Those that are over, the newest first.'),
  more: z.boolean().describe('There are more.'),
})

const remap = record({
  deadLetters: count().describe('Dead letters that were mapped again.'),
  remapped: count().describe('Of them: dead letters no longer.'),
  payloads: count().describe('Payloads that they became.'),
  duplicates: count().describe('Payloads that were left out: another message had the same reading.'),
  ignored: byReason('Messages that the config ignores'),
  kept: count().describe('Messages that go to quarantine.'),
  stillRefused: byReason('Dead letters that stay'),
  dryRun: dryRun.optional(),
})

export const remapSchema = remap.required()

const envelope = z
  .looseObject({
    topic: z.string().describe('Its topic.'),
    bytes: z.string().describe('Its bytes, in base64.'),
    qos: z.int().min(0).max(2).describe('Its QoS.'),
    retain: z.boolean().describe('Another broker had stored it.'),
    dup: z.boolean().describe('The client says that it sent it before.'),
    clientId: z.string().describe('Client id of the sender.'),
    userName: textOrNull().describe('User name of the sender.'),
    certificateName: textOrNull().describe('Name in the certificate of the sender.'),
    identity: textOrNull().exactOptional().describe('Name that the sender proved.'),
    address: z.string().exactOptional().describe('Address of the sender.'),
    arrivedAt: time().describe('When it arrived.'),
    source: textOrNull().describe('The source that has it.'),
    userProperties: z.record(z.string(), z.string()).exactOptional().describe('User properties (MQTT 5).'),
    properties: z
      .looseObject({
        contentType: z.string().exactOptional().describe('Content type.'),
        responseTopic: z.string().exactOptional().describe('Response topic.'),
        correlation: z.string().exactOptional().describe('Correlation data, in base64.'),
        isText: z.literal(true).exactOptional().describe('The payload format is text.'),
        expiryS: z.number().exactOptional().describe('Message expiry in seconds.'),
      })
      .exactOptional()
      .describe('Other properties (MQTT 5).'),
  })
  .describe('The message as it came; null for a payload.')

const failure = z
  .looseObject({
    errorType: z.string().describe('Type of the error.'),
    errorMessage: z.string().describe('The error in words.'),
    validationErrorDetails: z
      .array(
        z.looseObject({
          field: z.string().describe('The field.'),
          message: z.string().describe('What is wrong with it.'),
        }),
      )
      .describe('Fields that the service refused.'),
  })
  .describe('What the service said of the payload; null where it named none.')

export const deadLetterSchema = record({
  id: z.string().describe('Its id.'),
  deadLetter: z
    .looseObject({
      stage: z.enum(['mapping', 'delivery']).describe('Where it was given up.'),
      at: time().describe('When it was given up.'),
      reason: z.string().describe('Stable code, or type of the error of the service.'),
      detail: z.string().describe('The reason in words.'),
      provider: textOrNull().describe('The provider; null where it is not known.'),
      device: textOrNull().describe('The device; null where it is not known, or there are several.'),
      devices: z.array(z.string()).exactOptional().describe('Of a message of several: the first of them.'),
      moreDevices: count().exactOptional().describe('How many more there are.'),
      envelope: envelope.nullable(),
      payload: z.unknown().describe('The payload as it was sent; null for a message.'),
      payloadId: textOrNull().describe('Of the payload.'),
      batchId: textOrNull().describe('The batch that it was sent in.'),
      requestId: textOrNull().describe('The request that it was refused in.'),
      failure: failure.nullable(),
    })
    .describe('Message or payload, whole.'),
})

export const requeueSchema = record({
  dryRun,
  payloads: count().describe('Payloads that are sent again.'),
  left: byReason('Dead letters that stay'),
  missing: z.array(z.string()).describe('Ids that do not exist.'),
  remap: remap.nullable().describe('Of the messages among them; null: there are none.'),
})

export const purgeSchema = record({
  dryRun,
  deadLetters: count().describe('Dead letters that were deleted.'),
  shared: count().describe('Of the device, and left: they hold records of other devices, too.'),
  reasons: byReason('Of them'),
})

export const editSchema = record({
  id: z.string().describe('The dead letter.'),
  payloadId: z.string().describe('Of the payload that replaces it.'),
  previousPayloadId: z.string().describe('Before.'),
})

export const importPlanSchema = record({
  import: z.string().describe('Name of the import.'),
  planned: count().describe('Payloads in it so far.'),
})

export const importCheckSchema = record({
  planned: count().describe('Payloads in the import.'),
  stored: count().describe('Of them: in the spool already.'),
  delivered: count().describe('Of them: delivered already.'),
  ledgerSince: timeOrNull().describe('Earlier deliveries are not known; null: none is.'),
})

export const importSchema = record({
  dryRun,
  payloads: count().describe('Payloads that were imported.'),
  duplicates: count().describe('Lines that are in the spool already, or twice in the file.'),
  delivered: count().describe('Payloads that were delivered already.'),
  suspect: count().describe('Payloads that may differ from what was stored.'),
  remap: remap.nullable().describe('Of the messages among them; null: there are none.'),
})

export const releaseSchema = record({
  released: count().describe('Messages that left the quarantine.'),
  payloads: count().describe('Payloads that they became.'),
  duplicates: count().describe('Payloads that were left out: another message had the same reading.'),
  dead: byReason('Messages that became dead letters'),
  ignored: byReason('Messages that the config ignores'),
  kept: byReason('Messages that were kept again'),
  unlisted: count().describe('Messages that stay because their device is not listed.'),
  releasing: count().describe('Messages that are released without this.'),
})

export const dropSchema = record({
  dryRun,
  messages: count().describe('Messages that were deleted.'),
  reasons: byReason('Of them'),
})

export const batchActionSchema = record({
  action: z
    .enum(['retry', 'reissue', 'split', 'mark-delivered', 'drop', 'discard'])
    .describe('What was done.'),
  dryRun,
  batches: count().describe('Batches that were selected.'),
  payloads: count().describe('Payloads in them.'),
  mayBeProcessed: record({
    batches: count().describe('Batches.'),
    payloads: count().describe('Payloads in them.'),
  }).describe('Of them: those that the service may have processed.'),
  newBatches: count().describe('Batches that were made.'),
  waiting: z
    .array(
      record({
        provider: z.string().describe('The provider.'),
        endpoint: z.enum(['unavailable', 'unauthorized']).describe('State of its endpoint.'),
        nextAttemptInMs: z.number().min(0).describe('Until the next probe.'),
      }),
    )
    .describe('Of retry: providers whose batches wait for a probe.'),
  skipped: z
    .array(
      record({
        batchId: z.string().describe('The batch.'),
        code: z.enum(['BATCH_BUSY', 'BATCH_GONE', 'USAGE']).describe('Stable code.'),
        why: z.string().describe('Why it stays as it is.'),
      }),
    )
    .describe('Batches that stay as they are.'),
})

export const snapshotSchema = record({
  version: count().describe('Of the form of snapshots.'),
  path: z.string().describe('Its directory.'),
  createdAt: time().describe('Of the writes in it, the last.'),
  instance: z.string().describe('Id of the spool.'),
  writes: count().describe('Writes of the spool.'),
  payloads: count().describe('Payloads in it.'),
  batches: count().describe('Sealed batches in it.'),
  tables: count().describe('Tables of the database.'),
  linkedTables: count().describe('Those of them that share their disk space with the spool.'),
  bytes: bytes().describe('Its size.'),
})

export const assignLaneSchema = record({
  lane: count().describe('The lane.'),
  provider: z.string().describe('Whose lane it is now.'),
  payloads: count().describe('Payloads in it.'),
})

const lane = {
  lane: count().describe('Its number.'),
  provider: z.string().describe('Its provider.'),
  role: z.string().describe('Its role.'),
  batches: count().describe('Sealed batches.'),
  appended: count().describe('Payloads that ever were in it.'),
  settled: count().describe('Payloads that were settled.'),
  open: count().describe('Payloads in it now.'),
}

export const verifySchema = record({
  ok: z.boolean().describe('No problem was found.'),
  damage: z.array(z.looseObject({})).describe('Damaged files.'),
  tables: z
    .array(
      record({
        table: z.string().describe('The table.'),
        records: count().describe('Records in it.'),
        bytes: bytes().describe('Their size.'),
        damaged: count().describe('Records that cannot be read.'),
      }),
    )
    .describe('By table.'),
  lanes: z.array(record(lane)).describe('By lane.'),
  shelves: z
    .array(
      record({
        shelf: z.string().describe('The shelf.'),
        kept: count().describe('Messages that ever were in it.'),
        taken: count().describe('Messages that were taken.'),
        damaged: count().describe('Messages that cannot be read.'),
        messages: count().describe('Messages in it now.'),
      }),
    )
    .describe('By shelf of kept messages.'),
  problems: z.array(z.string()).describe('One sentence each.'),
  problemsHidden: count().describe('Problems beyond the limit of the list.'),
})
