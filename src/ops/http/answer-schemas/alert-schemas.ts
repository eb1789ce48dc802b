// alert-schemas.ts: the receivers of alerts, and what a test of them found.

import { z } from 'zod'
import { severities } from '../../../domain/cause.ts'
import { count, record, time, timeOrNull } from '../../status-schema/value-types.ts'

const type = z.enum(['webhook', 'email', 'command', 'heartbeat']).describe('What it is.')
const name = z.string().describe('Its name in the config.')
const target = z.string().describe('Where it sends, without secrets.')

export const alertsSchema = record({
  receivers: z
    .array(
      record({
        name,
        type,
        target,
        lastSentAt: timeOrNull().describe('When it last took an alert or a request.'),
        lastFailedAt: timeOrNull().describe('When a try last failed, since the start.'),
        lastFailure: z.string().nullable().describe('Why that try failed.'),
        failures: count().describe('Failed tries in a row.'),
        nextTryAt: timeOrNull().describe('When it is tried again; null: nothing failed, or now.'),
        heldBack: record({
          changes: count().describe('Changes that wait.'),
          untilAt: time().describe('When they can be sent, if no critical condition is sent before.'),
          severity: z.enum(severities).describe('Of the worst of them.'),
          what: z.string().describe('The worst of them.'),
        })
          .nullable()
          .describe('What waits because `max_per_hour` is reached; null: nothing.'),
        waiting: count().describe('Changes of conditions that wait.'),
        sent: count().describe('Alerts or requests that it took, since the start.'),
        failed: count().describe('Tries that failed, since the start.'),
        dropped: count().describe('Changes that were undone before they could be sent, since the start.'),
      }),
    )
    .describe('Receivers and heartbeats.'),
})

export const alertTestSchema = record({
  tests: z
    .array(
      record({
        name,
        type,
        target,
        ok: z.boolean().describe('Whether it took the test.'),
        detail: z.string().describe('What it answered, or why it failed.'),
        act: z.string().nullable().describe('What to do.'),
        tookMs: count().describe('How long it took.'),
      }),
    )
    .describe('One for each receiver and heartbeat.'),
})
