// alert-body.ts: an alert as JSON: the body of a webhook, and the stdin of a command. Version 1. Its schema
// is the type of the body and its reference (docs/alerts.md, config/alert.schema.json).
//
// Rules: times are ISO 8601 strings. Keys are added, and neither renamed nor removed, within one version.

import { z } from 'zod'
import { isoTime, isoTimeOrNull } from '../std/clock.ts'
import { severities } from '../domain/cause.ts'
import { worstOf } from './alert-changes.ts'
import { textOf } from './alert-text.ts'
import type { Alert } from './types.ts'

const time = z.iso.datetime()
const severity = z.enum(severities)

const change = z.strictObject({
  kind: z
    .enum(['raised', 'worsened', 'changed', 'repeated', 'cleared'])
    .describe(
      '`worsened`: its severity rose. `changed`: another of `causes` came. `repeated`: it is still raised after the ' +
        'time in `repeat`.',
    ),
  code: z.string().describe('Code of the condition, or `VERDICT`.'),
  key: z.string().nullable().describe('What it is about, such as a provider; null: the gateway.'),
  severity: severity.describe('How bad it is, or was.'),
  since: time.describe('When it began.'),
  clearedAt: time.nullable().describe('When it was cleared; null while it is raised.'),
  count: z.int().min(0).describe('How often it happened since it began.'),
  what: z.string().describe('What is wrong, or was.'),
  why: z.string().describe('Why, as far as it is known.'),
  act: z.string().describe('What to do.'),
  causes: z
    .array(z.string())
    .describe('Each thing that has the problem, such as a device; empty where there is only one.'),
})

export const alertSchema = z.strictObject({
  version: z.literal(1).describe('Version of this document.'),
  id: z.string().describe('Id of the alert. A try that is repeated has the same id.'),
  test: z.boolean().describe('True for an alert of `alerts test`.'),
  gateway: z.string().describe('Name of the gateway: `alerts.gateway`.'),
  gatewayVersion: z.string().describe('Version of the gateway.'),
  receiver: z.string().describe('Name of the receiver in the config.'),
  createdAt: time.describe('When the alert was made, by our time.'),
  severity: severity.describe(
    'Worst of the changes that are not `cleared`, also of those that wait (`heldBack`); `info` where all are.',
  ),
  headline: z.string().describe('One line: the first change, and how many more there are.'),
  text: z.string().describe('The whole alert as plain text.'),
  verdict: z.string().describe('Verdict of the gateway at that time, as in /status.'),
  sentence: z.string().describe('The verdict in words.'),
  open: z.int().min(0).describe('Open conditions that the receiver gets alerts of.'),
  omitted: z
    .int()
    .min(0)
    .describe(
      'How often a condition changed and changed back since the last alert, before it could be sent.',
    ),
  heldBack: z
    .strictObject({
      changes: z.int().describe('Changes that wait.'),
      untilAt: time.describe('When they can be sent, if no critical condition is sent before.'),
      severity: severity.describe('Of the worst of them.'),
      what: z.string().describe('The worst of them.'),
    })
    .nullable()
    .describe('Not null: this alert says that `max_per_hour` is reached.'),
  digest: z
    .array(change.omit({ kind: true, clearedAt: true }))
    .nullable()
    .describe('Not null: this is the summary of the day, with all open conditions.'),
  page: z.string().nullable().describe('Address of the page: `alerts.page`.'),
  changes: z.array(change).describe('What changed since the last alert, the worst first.'),
})

export type AlertBody = z.infer<typeof alertSchema>

export function bodyOf(alert: Alert): AlertBody {
  const { isTest, version, createdAt, changes, heldBack, digest, ...rest } = alert
  return {
    version: 1,
    ...rest,
    test: isTest,
    gatewayVersion: version,
    createdAt: isoTime(createdAt),
    severity: heldBack?.severity ?? worstOf(changes),
    text: textOf(alert),
    heldBack: heldBack && { ...heldBack, untilAt: isoTime(heldBack.untilAt) },
    digest:
      digest?.map(({ causes, ...one }) => ({ ...one, causes: [...causes], since: isoTime(one.since) })) ??
      null,
    changes: changes.map(({ since, clearedAt, causes, ...one }) => ({
      ...one,
      causes: [...causes],
      since: isoTime(since),
      clearedAt: isoTimeOrNull(clearedAt),
    })),
  }
}
