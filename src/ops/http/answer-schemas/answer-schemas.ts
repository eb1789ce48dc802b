// answer-schemas.ts: the shapes of the answers, for /openapi.json. Entry file of this folder.
//
//   device-schemas.ts    /devices and one device
//   control-schemas.ts   what changes report
//   history-schemas.ts   /history
//   alert-schemas.ts     /alerts, and tests of receivers
//
// Nothing is made by these schemas: an answer is JSON.stringify of what the stages give, so no field is lost.
// A test compares the answers of a running daemon with them, and reports fields that are missing here.
// /status has its own schema (../../status-schema).

import { z } from 'zod'
import { heldReasons, type HeldReason } from '../../../domain/held.ts'
import { ledgerOutcomes } from '../../../domain/settlement.ts'
import { verdicts } from '../../gateway-verdict/gateway-verdict.ts'
import { bytes, count, record, time, timeOrNull } from '../../status-schema/value-types.ts'
import { now } from './device-schemas.ts'

const textOrNull = () => z.string().nullable()

export const problemSchema = record({
  type: z.string().describe('`urn:telemetry-gateway:problem:` and the code.'),
  title: z.string().describe('Meaning of the HTTP status.'),
  status: count().describe('HTTP status.'),
  detail: z.string().describe('`what` and `why`.'),
  instance: z.string().describe('Path of the request.'),
  code: z.string().describe('Stable code: [list](http.md#errors).'),
  what: z.string().describe('What happened.'),
  why: z.string().describe('Why, as far as it is known.'),
  act: z.string().describe('What to do.'),
  parameter: z.string().optional().describe('The first wrong parameter.'),
  found: textOrNull().optional().describe('Its value; null: it is missing.'),
  allowed: z.array(z.string()).optional().describe('The values or names that are allowed.'),
  problems: z
    .array(
      record({
        parameter: z.string().describe('Its name.'),
        found: textOrNull().describe('Its value; null: it is missing.'),
        why: z.string().describe('What is wrong.'),
        allowed: z.array(z.string()).optional().describe('The values or names that are allowed.'),
      }),
    )
    .optional()
    .describe('Every wrong parameter.'),
  nearest: z.array(z.string()).optional().describe('Known names that are similar.'),
})

export const readySchema = record({
  ready: z.boolean().describe('Whether messages are accepted.'),
  reason: textOrNull().describe('Why not.'),
})

export const sessionSchema = record({
  user: textOrNull().describe('Who is logged in, or sent a password; null: nobody.'),
  mayRead: z.boolean().describe('Whether this client may read.'),
  mayChange: z.boolean().describe('Whether it may use the paths below /control.'),
  hasUsers: z.boolean().describe('Whether the config has users.'),
  token: textOrNull().describe(
    'Of a session: changes need it in the header `gateway-token`, or in the field `token` of a form.',
  ),
})

export const verdictSchema = record({
  verdict: z.enum(verdicts).describe('Whether the gateway works.'),
  sentence: z.string().describe('The verdict in words.'),
  lastMessageAt: timeOrNull().describe('When the last message came, since the start.'),
  lastAcceptedAt: timeOrNull().describe('When the service last accepted a payload, since the start.'),
})

const stage = z.enum(['mapping', 'delivery']).describe('Where it was given up.')

export const deadLettersSchema = record({
  now,
  scanned: count().describe('Dead letters that were read.'),
  more: z.boolean().describe('There are more than were read.'),
  groups: z
    .array(
      record({
        stage,
        reason: z.string().describe('Stable code, or type of the error of the service.'),
        source: textOrNull().describe('Source that took the message.'),
        provider: textOrNull().describe('Provider of the payloads.'),
        fields: textOrNull().describe('What the service said about fields.'),
        count: count().describe('Dead letters.'),
        devices: count().describe('Devices, up to 1000.'),
        oldestAt: time().describe('When the oldest was given up.'),
        latestAt: time().describe('When the latest was given up.'),
        detail: z.string().describe('Of the latest one.'),
      }),
    )
    .describe('By cause, the largest first.'),
  deadLetters: z
    .array(
      record({
        id: z.string().describe('Its id.'),
        at: time().describe('When it was given up.'),
        stage,
        reason: z.string().describe('Stable code, or type of the error of the service.'),
        detail: z.string().describe('The reason in words.'),
        device: textOrNull().describe('Device of the message or payload.'),
        provider: textOrNull().describe('Its provider.'),
        source: textOrNull().describe('Source that took the message.'),
        topic: textOrNull().describe('Topic of the message.'),
        payloadId: textOrNull().describe('Of a payload.'),
        requestId: textOrNull().describe('Of the answer of the service.'),
      }),
    )
    .describe('The oldest ones, without their content.'),
})

const outcome = z.enum(ledgerOutcomes).describe('What became of it.')

export const ledgerSchema = record({
  entries: z
    .array(
      record({
        at: time().describe('When it was settled.'),
        payloadId: z.string().describe('The payload.'),
        device: textOrNull().describe('Its device; null where it names none.'),
        deviceTime: timeOrNull().describe('Its time, by the device.'),
        outcome,
        schedule: textOrNull().describe('Of a retry: its schedule.'),
        step: count().nullable().describe('Of a retry: the number of failures before.'),
        reason: textOrNull().describe('Of a payload that was not delivered.'),
        detail: textOrNull().describe('The reason in words.'),
        provider: z.string().describe('Its provider.'),
        lane: count().describe('Its lane.'),
        batchId: z
          .string()
          .describe('Its batch; of a returned payload that was in no batch, the id of its removal.'),
        requestId: textOrNull().describe('Of the answer of the service.'),
      }),
    )
    .describe('The newest settlement first.'),
  more: z.boolean().describe('There may be more.'),
  next: textOrNull().describe('Give it as `after` to continue; null where nothing follows.'),
  oldestAt: timeOrNull().describe('When the oldest entry was settled; null: the ledger is empty.'),
  behind: count().describe('Settled batches that are not in the ledger yet.'),
})

export const quarantineSchema = record({
  now,
  shelves: z
    .array(
      record({
        kind: z.enum(['quarantine', 'clock']).describe('Device not listed, or clock not judged.'),
        provider: z.string().describe('The provider.'),
        messages: count().describe('Messages of it.'),
        bytes: bytes().describe('Their size.'),
      }),
    )
    .describe('By provider.'),
  scanned: count().describe('Messages that were read.'),
  more: z.boolean().describe('There are more messages or groups than are shown.'),
  groups: z
    .array(
      record({
        device: textOrNull().describe('The device.'),
        reason: z.string().describe('Stable code.'),
        messages: count().describe('Messages.'),
        oldestAt: time().describe('When the oldest was kept.'),
        latestAt: time().describe('When the latest was kept.'),
        detail: z.string().describe('Of the latest one.'),
      }),
    )
    .describe('By device and reason, the largest first.'),
  messages: z
    .array(
      record({
        id: z.string().describe('Its id.'),
        device: textOrNull().describe('The device.'),
        reason: z.string().describe('Stable code.'),
        detail: z.string().describe('The reason in words.'),
        keptAt: time().describe('When it was kept.'),
        arrivedAt: time().describe('When it came.'),
        source: textOrNull().describe('Source that took it.'),
        topic: z.string().describe('Its topic.'),
      }),
    )
    .describe('Of the device that was asked for, the oldest first.'),
})

const heldReason = z.enum(Object.keys(heldReasons) as HeldReason[])
const batchState = z.enum(['in flight', 'waiting', 'held']).describe('What it does now.')

const batchShape = {
  batchId: z.string().describe('Its id, which the service sees.'),
  provider: z.string().describe('Its provider.'),
  role: z.string().describe('Role of its lane.'),
  payloads: count().describe('Payloads in it.'),
  bytes: bytes().describe('JSON bytes of its payloads.'),
  sealedAt: time().describe('When it was sealed. The timestamp in it is by the clock of the service.'),
  state: batchState,
  held: record({
    reason: heldReason.describe('Stable code.'),
    since: time().describe('Since when.'),
    requestId: textOrNull().describe('Of the last answer.'),
    why: z.string().describe('The reason in words.'),
  })
    .nullable()
    .describe('Of a held batch.'),
  submissions: count().describe('Submissions since the start.'),
  mayBeProcessed: z.boolean().describe('The service may have processed it.'),
  lastRequestId: textOrNull().describe('Of the last answer.'),
  nextTryAt: timeOrNull().describe('When it is sent next; null: it is in flight, or its turn decides.'),
}

export const batchesSchema = record({
  now: time().describe('When this list was made.'),
  groups: z
    .array(
      record({
        provider: z.string().describe('The provider.'),
        state: batchState,
        reason: heldReason.nullable().describe('Why they are held.'),
        batches: count().describe('Batches.'),
        payloads: count().describe('Payloads in them.'),
        oldestAt: time().describe('When the oldest was held or sealed.'),
      }),
    )
    .describe('By provider, state and reason.'),
  batches: z.array(record(batchShape)).describe('Held ones first, the oldest first.'),
  more: z.boolean().describe('There are more than are listed.'),
  moreBatches: count().describe('How many.'),
})

export const batchSchema = record({
  ...batchShape,
  contents: z
    .array(
      record({
        payloadId: z.string().describe('The payload.'),
        device: textOrNull().describe('Its device.'),
      }),
    )
    .describe('In the order of the batch.'),
  answers: z
    .array(
      record({
        at: time().describe('When it came.'),
        requestId: textOrNull().describe('Its requestId.'),
        text: z.string().describe('The answer, or how the submission failed.'),
      }),
    )
    .describe('The last answers since the start, the oldest first.'),
})

export const auditSchema = record({
  changes: z
    .array(
      record({
        at: time().describe('When it began.'),
        id: z.string().describe('Its id.'),
        change: z.string().describe('The path behind /control/, or the command.'),
        request: z.string().describe('Parameters of the request.'),
        by: record({
          via: z
            .enum(['socket', 'tcp', 'offline'])
            .describe('Control socket, TCP, or a command without a daemon.'),
          user: textOrNull().describe('Who: a claim, over TCP a user with a password.'),
          sudoUser: textOrNull().optional().describe('Who called sudo: a claim.'),
          address: z.string().optional().describe('Over TCP: from where.'),
        }).describe('Who made it.'),
        outcome: z
          .enum(['done', 'refused', 'unknown'])
          .describe('Unknown: the process ended before the change did.'),
        status: count().nullable().describe('HTTP status of the answer.'),
        result: z.record(z.string(), z.unknown()).describe('Numbers and short texts of the answer.'),
        tookMs: z.number().min(0).nullable().describe('How long it took.'),
      }),
    )
    .describe('The newest first.'),
  more: z.boolean().describe('There are more.'),
  damaged: count().describe('Lines of the log that cannot be read.'),
})
