// fault-plan.ts: the schema of injected faults, a document in YAML or JSON.
//
// The document is one plan or a list of plans. A request gets the first plan that matches it (`only`) and is
// not used up (`count`); without such a plan the service behaves normally. So a list is also a script: 500
// three times, then one cut after the commit, then normal answers.
//
//   - { count: 3, always: 500, retry_after: 2s }
//   - { count: 1, after_commit: { cut: 1 } }

import { z } from 'zod'
import type { ConfigProblem } from '../std/config-problem.ts'
import { parseDuration } from '../std/quantity.ts'

const rate = z.number().min(0).max(1)

const longestMs = 86_400_000

const milliseconds = z.union([z.number(), z.string()]).transform((value, context) => {
  const ms = typeof value === 'number' ? value : parseDuration(value)
  if (ms !== undefined && ms >= 0 && ms <= longestMs) return ms
  context.addIssue({
    code: 'custom',
    message: 'must be milliseconds or a duration such as 250ms or 30s, at most 1d',
  })
  return z.NEVER
})

const offset = z.union([z.number(), z.string()]).transform((value, context) => {
  const back = typeof value === 'string' && value.startsWith('-')
  const size = typeof value === 'number' ? value : parseDuration(value.replace(/^[+-]/, ''))
  if (size !== undefined && Math.abs(size) <= 3650 * longestMs) return back ? -size : size
  context.addIssue({ code: 'custom', message: 'must be milliseconds or a duration such as 90s or -10m' })
  return z.NEVER
})

const range = z
  .strictObject({ min: milliseconds, max: milliseconds })
  .refine(({ min, max }) => min <= max, 'min must not be larger than max')
const latency = z.union([milliseconds.transform((ms) => ({ min: ms, max: ms })), range])

const statusRates = z
  .record(z.string().regex(/^[345]\d\d$/, 'must be a status from 300 to 599'), rate)
  .refine(
    (rates) => Object.values(rates).reduce((sum, each) => sum + each, 0) <= 1 + 1e-9,
    'the rates add up to more than 1',
  )

/** The fault of one payload that would otherwise be accepted. */
const failure = z.strictObject({
  device: z.string().optional().describe('only payloads of this deviceIdentifier.id'),
  asset: z.string().optional().describe('only payloads of this assetIdentifier.id'),
  id_prefix: z
    .string()
    .toLowerCase()
    .optional()
    .describe('only payloads whose payloadId starts with this text'),
  has: z.string().optional().describe('only payloads that have this field, as a path such as gps.speed'),
  rate: rate.default(1).describe('share of these payloads that fails, 0 to 1'),
  error_type: z.string().default('Validation').describe('errorType of the failure record'),
  message: z
    .string()
    .default('The payload was refused by a fault rule.')
    .describe('errorMessage of the failure record'),
  field: z
    .string()
    .optional()
    .describe('field of the entry in validationErrorDetails; without it there is no entry'),
})

const planSchema = z.strictObject({
  count: z.number().int().min(1).optional().describe('number of requests after which the plan ends'),
  only: z
    .strictObject({ operation: z.enum(['single', 'batch']).optional(), provider: z.string().optional() })
    .default({})
    .describe('the plan applies to requests of this operation and this X-Provider-Key'),
  clock_offset: offset.default(0).describe('clock offset of the service: Date header and age of signatures'),
  latency: latency.optional().describe('delay before the request is processed'),
  cut: z
    .strictObject({ before_reading: rate.default(0), after_reading: rate.default(0) })
    .default({ before_reading: 0, after_reading: 0 })
    .describe('resets the connection; no payload is accepted'),
  hang: rate.default(0).describe('reads the request and never answers; no payload is accepted'),
  always: z
    .number()
    .int()
    .min(300)
    .max(599)
    .optional()
    .describe('answers with this status without reading the request'),
  status: statusRates.default({}).describe('share of requests that get this status, for each status'),
  retry_after: milliseconds.optional().describe('Retry-After header of the answers by `always` and `status`'),
  retry_after_form: z.enum(['seconds', 'date']).default('seconds'),
  fail: z
    .array(failure)
    .max(1000)
    .default([])
    .describe('payloads that fail; the first rule that matches decides'),
  lost: rate.default(0).describe('share of payloads that are not accepted and in neither list'),
  after_commit: z
    .strictObject({
      latency: latency.optional(),
      cut: rate.default(0),
      hang: rate.default(0),
      error: rate.default(0),
      error_status: z.number().int().min(400).max(599).default(500),
    })
    .default({ cut: 0, hang: 0, error: 0, error_status: 500 })
    .describe('the payloads are accepted, but the client gets no answer'),
  answer: z
    .strictObject({
      unlisted: rate.default(0).describe('accepted payloads that are in neither list'),
      both_lists: rate.default(0).describe('accepted payloads that are in both lists'),
      foreign: rate.default(0).describe('answers with an accepted payloadId that was not submitted'),
      wrong_summary: rate.default(0).describe('answers with wrong numbers in the summary'),
      response_code: z.number().int().optional().describe('responseCode in the body of a 200'),
    })
    .default({ unlisted: 0, both_lists: 0, foreign: 0, wrong_summary: 0 }),
  body: z
    .strictObject({
      truncated: rate.default(0).describe('half of the announced bytes, then the connection is closed'),
      half: rate.default(0).describe('half of the JSON, announced as the whole'),
      empty: rate.default(0),
      html: rate.default(0).describe('an HTML page, as a proxy sends it, with the status unchanged'),
      huge: rate.default(0).describe('endless white space before the JSON'),
      huge_bytes: z
        .number()
        .int()
        .min(1)
        .max(2 ** 32)
        .default(67_108_864),
    })
    .default({ truncated: 0, half: 0, empty: 0, html: 0, huge: 0, huge_bytes: 67_108_864 })
    .describe('changes the body of the answer'),
})

const listSchema = z.array(planSchema).max(1000)

export type FaultPlan = z.output<typeof planSchema>
export type FaultsInput = z.input<typeof planSchema> | z.input<typeof planSchema>[]

export type FaultsReading =
  { kind: 'faults'; plans: readonly FaultPlan[] } | { kind: 'problems'; problems: readonly ConfigProblem[] }

/** Total: reads any document and reports all problems. */
export function readFaults(value: unknown): FaultsReading {
  const reading = listSchema.safeParse(Array.isArray(value) ? value : [value])
  if (reading.success) return { kind: 'faults', plans: reading.data }
  const problems = reading.error.issues.map((issue) => ({
    path: issue.path
      .slice(Array.isArray(value) ? 0 : 1)
      .map((step) => (typeof step === 'number' ? step : String(step))),
    message: issue.message,
  }))
  return { kind: 'problems', problems }
}
