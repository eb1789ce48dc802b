// case-schema.ts: the schema of a file of mapping cases.

import { z } from 'zod'
import { duration } from '../../std/schema.ts'
import { deviceColumns } from '../devices/device-table.ts'
import { text } from '../source-config/path-options.ts'
import { presetSchema } from '../source-config/preset-merge.ts'

const message = {
  topic: text(65_535).optional().describe('Topic of the message.'),
  message: z.string().optional().describe('The message as text.'),
  hex: z
    .string()
    .regex(/^([0-9a-fA-F]{2})*$/, 'must be pairs of hexadecimal digits')
    .optional()
    .describe('The message as bytes.'),
  retain: z.boolean().default(false).describe('The message has the retain flag.'),
  will: z.boolean().default(false).describe('The message is the will of its client.'),
  dup: z.boolean().default(false).describe('The message has the DUP flag.'),
  user_properties: z
    .record(z.string().min(1), z.string())
    .optional()
    .describe('User properties of the message (MQTT 5).'),
  content_type: z.string().optional().describe('Content type of the message (MQTT 5).'),
}

const step = z.strictObject({
  ...message,
  after: duration({ minMs: 0, maxMs: 365 * 86_400_000 })
    .optional()
    .describe('Time after the previous message.'),
})

const payload = z.strictObject({
  device: text(512),
  time: z
    .union([z.int(), z.literal('arrival')])
    .describe('`signalTimestamp` in milliseconds, or `arrival` for a message without a time.'),
  gps: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('The whole position. Without this option there must be none.'),
  signals: z
    .array(
      z.strictObject({
        type: z.string(),
        value: z.string(),
        valueUnit: z.string().optional(),
        assetPart: z.string().optional(),
      }),
    )
    .default([])
    .describe('All signals, without their ids.'),
  fields: z
    .record(z.string(), z.unknown())
    .default({})
    .describe(
      'Extra fields of the payload by their dotted names, such as gps.altitude. Others are not compared.',
    ),
})

const mappingCase = z
  .strictObject({
    name: text(200).describe('What the case shows.'),
    ...message,
    messages: z.array(step).min(1).max(1000).optional().describe('A sequence instead of one message.'),
    client: text(256).default('case').describe('Client id of the sender.'),
    user: text(256).optional().describe('User name of the sender.'),
    certificate: text(256).optional().describe("Common name of the sender's certificate."),
    identity: text(256).optional().describe('Identity of the sender.'),
    at: z.iso
      .datetime({ offset: true, error: 'must be a time such as 2026-01-28T15:00:08Z' })
      .optional()
      .describe('When the first message arrives. Default: now.'),
    payloads: z.array(payload).min(1).optional(),
    ignored: text(8192).optional().describe('The reason. `when` means any condition of the source.'),
    refused: text(64).optional().describe('The reason of the dead letter, such as BAD_POSITION.'),
    quarantined: text(64).optional().describe('The reason, such as FUTURE.'),
  })
  .superRefine(({ topic, message, hex, messages, ...expected }, context) => {
    const ways = [message, hex, messages].filter((way) => way !== undefined)
    if (ways.length !== 1) refuse(context, 'needs exactly one of message, hex and messages')
    const steps = messages ?? [{ topic, message, hex }]
    if (steps.some((one) => one.topic === undefined)) refuse(context, 'needs a topic for each message')
    if (messages?.some((one) => (one.message === undefined) === (one.hex === undefined)))
      refuse(context, 'needs message or hex in each of its messages')
    const { payloads, ignored, refused, quarantined } = expected
    if ([payloads, ignored, refused, quarantined].every((one) => one === undefined))
      refuse(context, 'needs an expectation: payloads, ignored, refused or quarantined')
  })

const rowColumns = deviceColumns.filter((column) => column !== 'device')

export const casesSchema = z.strictObject({
  source: presetSchema.optional(),
  devices: z.record(text(512), z.partialRecord(z.enum(rowColumns), text(256))).default({}),
  keys: z
    .record(text(512), text(32))
    .default({})
    .describe('Keys of devices, for cases of a preset with encrypted messages. They protect nothing.'),
  cases: z.array(mappingCase).min(1).max(10_000),
})

export type CasesFile = z.output<typeof casesSchema>

function refuse(context: z.RefinementCtx, message: string): void {
  context.addIssue({ code: 'custom', message })
}
