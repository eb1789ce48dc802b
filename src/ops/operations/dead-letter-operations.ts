// dead-letter-operations.ts: dead letters: listed by cause, shown, exported, and what an operator does with
// them.
//
// A larger file is imported in parts: import-plan with each part, import-check, and import with each part
// again. The first import-plan answers with a name for `import`, which the later requests repeat:
//
//   import-plan     the body is NDJSON; nothing is imported
//   import-check    compares it with the spool and the ledger; withoutLedger leaves the ledger out
//   import          imports what is new
//
// Without a selection nothing is selected. Many ids may stand in the body: ids-in-body.ts.

import { isUtf8 } from 'node:buffer'
import { z } from 'zod'
import { isoTimes } from '../../std/iso-times.ts'
import { plural } from '../../std/quantity.ts'
import { countLines } from '../../std/text-table/text-lines.ts'
import type { DeadLetterOperations, DeadLetterQuery } from '../../dead-letters/dead-letters.ts'
import { deadLettersSchema } from '../http/answer-schemas/answer-schemas.ts'
import {
  deadLetterSchema,
  editSchema,
  importCheckSchema,
  importPlanSchema,
  importSchema,
  purgeSchema,
  remapSchema,
  requeueSchema,
} from '../http/answer-schemas/control-schemas.ts'
import { deviceKeyOf } from '../http/device-list.ts'
import { bodyOf, bodyTooLarge } from '../http/ids-in-body.ts'
import { badRequest, notFound, ok, starting } from '../http/json-answer.ts'
import { choice, flag, limit, requiredText, text, texts, time } from '../http/http-routing/parameters.ts'
import type { RouteRequest } from '../http/http-routing/route.ts'
import { deadLettersText, deadLetterText, remapLines } from './dead-letter-text.ts'
import { operation, selectionRefused, type ControlAnswer, type Operation } from './operation.ts'
import { missingLines, missingOf } from './quarantine-operations.ts'

/** Of `import` and `edit`; the command sends a file in such parts. */
const bodyBytesMax = 8 * 1024 * 1024

const act = 'Nothing was changed.'

const name = { value: 'name' }
const ids = texts('The dead letter. May be given more than once.', { value: 'id', isArgument: true })
const filter = {
  stage: choice('Only of this stage: mapping (messages) or delivery (payloads).', ['mapping', 'delivery'], {
    value: 'stage',
  }),
  reason: text('Only with this reason, such as Validation or NOT_JSON.', { value: 'code' }),
  device: text('Only of this device.', name),
  source: text('Only messages of this source.', name),
  provider: text('Only payloads of this provider.', name),
  since: time('From this time on, such as 2026-11-20T06:00Z.'),
  until: time('Before this time.'),
}
const all = flag('Selects all dead letters.')
const which = { id: ids, ...filter, all }
const one = { value: 'id', isArgument: true } as const
const dryRun = flag('Only reports what would be done.')
const token = text('Name of the import that the lines belong to, by import-plan.')
const withoutLedger = flag('Imports although the ledger cannot say what was delivered.')
const ndjson = { contentType: 'application/x-ndjson', means: 'Lines of an export.' }

type Filter = { [Name in keyof typeof filter]?: z.output<(typeof filter)[Name]> }
type Selection = Filter & { id: readonly string[] }

export const deadLetterOperations: readonly Operation[] = [
  operation({
    name: 'dead-letters/list',
    path: '/dead-letters',
    effect: 'lists',
    summary: 'List dead letters by cause, and the oldest ones without their content.',
    parameters: z.strictObject({ id: ids, ...filter, limit: limit('At most this many in the list.') }),
    prints: { ids: 'also print single dead letters with their ids, the oldest ones' },
    means: 'The dead letters.',
    schema: deadLettersSchema,
    async answer({ source: { stages, ourNow }, values: { limit: most, ...selection } }) {
      if (!stages.deadLetters) return starting()
      const { device } = selection
      const named = device === undefined ? selection : { ...selection, device: deviceKeyOf(stages, device) }
      const list = await stages.deadLetters.list(deadLetterQueryOf(named), most)
      return ok(isoTimes({ now: ourNow(), ...list }))
    },
    text: deadLettersText,
  }),
  operation({
    name: 'dead-letters/show',
    effect: 'shows',
    summary: 'Show one dead letter: message, payload, and the answer of the service.',
    parameters: z.strictObject({ id: requiredText('The dead letter; `list --ids` shows its id.', one) }),
    prints: { hex: 'print the message in hexadecimal (default: as text where it is text)' },
    means: 'The dead letter.',
    schema: deadLetterSchema,
    answer: (request) =>
      withDeadLetters(request, async (deadLetters) => {
        const { id } = request.values
        const entry = await deadLetters.show(id)
        if (entry !== null) return ok(isoTimes(entry))
        return notFound(`There is no dead letter ${id}.`, 'It was requeued, mapped or deleted.', act)
      }),
    text: deadLetterText,
  }),
  operation({
    name: 'dead-letters/requeue',
    effect: 'changes',
    idsInBody: true,
    summary: 'Send dead letters again: payloads as they are, messages through the mapping in force.',
    notes: [
      'A dead letter is removed in the same write that adds its payload. An import skips payloads that ' +
        'are in the spool, or delivered by the ledger. Ctrl-C stops the command; completed writes are ' +
        'kept. After an interruption give the same command again: it continues where it stopped.',
      'Exit status 1: an id does not exist.',
    ],
    parameters: z.strictObject({ ...which, dryRun }),
    means: 'What was requeued, or would be.',
    schema: requeueSchema,
    refuses: refusalOf,
    answer: (request) =>
      withSelection(request, async (deadLetters, query) =>
        ok(await deadLetters.requeue(query, { dryRun: request.values.dryRun }, request.signal)),
      ),
    text: ({ dryRun: dry, payloads, left, missing, remap }) => [
      ...(payloads > 0 || remap === null
        ? [`${plural(payloads, 'payload')} ${dry ? 'would' : 'will'} be sent to the ingestion API again.`]
        : []),
      ...countLines(left, (count, why) => `${count} stay: ${why}`),
      ...missing.map((id) => `  not found: ${id}`),
      ...remapLines(remap === null ? [] : [remap], dry),
    ],
    isDone: ({ missing }) => missing.length === 0,
  }),
  operation({
    name: 'dead-letters/edit',
    effect: 'changes',
    summary: 'Correct the payload of a dead letter and send it.',
    notes: [
      'The payload keeps its payloadId. If you change device, asset or time, it is another reading and gets a ' +
        'new payloadId.',
    ],
    parameters: z.strictObject({ id: requiredText('Dead letter with a refused payload.', one) }),
    body: { contentType: 'application/json', means: 'The payload that replaces it.' },
    means: 'The new payloadId.',
    schema: editSchema,
    answer: (request) =>
      withBody(request, async (deadLetters, body) =>
        ok(await deadLetters.edit(request.values.id, body, request.signal)),
      ),
    text: ({ payloadId, previousPayloadId }) => [
      payloadId === previousPayloadId
        ? `Payload ${payloadId} will be sent to the ingestion API again.`
        : `Payload ${payloadId} will be sent to the ingestion API; it is another reading than ${previousPayloadId}.`,
    ],
  }),
  operation({
    name: 'dead-letters/export',
    effect: 'exports',
    idsInBody: true,
    summary: 'Write dead letters as NDJSON, whole, one line each. They stay in the spool.',
    parameters: z.strictObject(which),
    means: 'The dead letters.',
    contentType: 'application/x-ndjson; charset=utf-8',
    refuses: refusalOf,
    answer: (request) =>
      withSelection(request, (deadLetters, query) => ({ lines: deadLetters.export(query) })),
  }),
  operation({
    name: 'dead-letters/purge',
    effect: 'changes',
    idsInBody: true,
    summary: 'Delete dead letters. Their data is then lost.',
    notes: [
      'To keep a copy, run first: dead-letters export --to FILE.',
      'Exit status 1: an id does not exist.',
    ],
    parameters: z.strictObject({
      ...which,
      dryRun,
      yes: flag('Does it. Without it, the answer reports what would be deleted.'),
    }),
    means: 'What was deleted, or would be.',
    schema: purgeSchema,
    refuses: refusalOf,
    answer: (request) =>
      withSelection(request, async (deadLetters, query) => {
        const { dryRun: dry, yes } = request.values
        return ok(await deadLetters.purge(query, { dryRun: dry || !yes }, request.signal))
      }),
    text: ({ dryRun: dry, deadLetters, shared, reasons }, { values }) => [
      `${plural(deadLetters, 'dead letter')} ${dry ? 'would be deleted' : 'deleted'}.`,
      ...countLines(reasons, (count, reason) => `${count} ${reason}`),
      ...(shared > 0 ? [`  ${shared} left: records of other devices are in them, too`] : []),
      ...missingLines(missingOf(values, deadLetters + shared)),
    ],
    isDone: ({ deadLetters, shared }, values) => missingOf(values, deadLetters + shared) === 0,
  }),
  operation({
    name: 'dead-letters/remap',
    effect: 'changes',
    summary: 'Map dead letters of the mapping stage again, with the mapping in force.',
    notes: [
      'Messages that still cannot be mapped stay dead letters. Ctrl-C stops the command; completed ' +
        'writes are kept.',
    ],
    parameters: z.strictObject({
      dryRun,
      reason: text('Only with this reason, such as NO_SOURCE.', { value: 'code' }),
      source: text('Only of this source.', name),
    }),
    means: 'What was mapped, or would be.',
    schema: remapSchema,
    async run({ values: { dryRun: dry, reason = null, source = null }, signal }, control) {
      return ok(await control.remap({ dryRun: dry, reason, source }, signal))
    },
    text: (report) => remapLines([report], report.dryRun),
  }),
  operation({
    name: 'dead-letters/import-plan',
    effect: 'checks',
    summary: 'Check the lines of an export before an import in parts.',
    parameters: z.strictObject({ import: token }),
    body: ndjson,
    means: 'The name of the import.',
    schema: importPlanSchema,
    answer: (request) =>
      withBody(request, async (deadLetters, body) =>
        ok(await deadLetters.planImport(body, request.values.import, request.signal)),
      ),
  }),
  operation({
    name: 'dead-letters/import-check',
    effect: 'checks',
    summary: 'Compare the planned lines with the spool and the ledger.',
    parameters: z.strictObject({
      import: requiredText('Name of the import, by import-plan.'),
      withoutLedger,
    }),
    means: 'What is known of the payloads.',
    schema: importCheckSchema,
    answer: (request) =>
      withDeadLetters(request, async (deadLetters) => {
        const { import: of, withoutLedger: without } = request.values
        return ok(isoTimes(await deadLetters.checkImport(of, { withoutLedger: without }, request.signal)))
      }),
  }),
  operation({
    name: 'dead-letters/import',
    effect: 'changes',
    summary: 'Import the lines of an export.',
    parameters: z.strictObject({ import: token, dryRun, withoutLedger }),
    body: ndjson,
    means: 'What was imported, or would be.',
    schema: importSchema,
    answer: (request) =>
      withBody(request, async (deadLetters, body) => {
        const { import: of, dryRun: dry, withoutLedger: without } = request.values
        const options = { dryRun: dry, token: of, withoutLedger: without }
        return ok(await deadLetters.importLines(body, options, request.signal))
      }),
  }),
]

function refusalOf({
  dryRun: _dry,
  yes: _yes,
  ...selection
}: Selection & { all: boolean; dryRun?: boolean; yes?: boolean }) {
  return selectionRefused('dead letter', selection)
}

/** Of parameters that were validated. */
export function deadLetterQueryOf({ id, ...values }: Selection): DeadLetterQuery {
  const names = Object.keys(filter) as (keyof typeof filter)[]
  const given = names.filter((one) => values[one] !== undefined).map((one) => [one, values[one]])
  return { ...(id.length > 0 && { ids: id }), ...Object.fromEntries(given) }
}

type Work<Input extends unknown[]> = (
  deadLetters: DeadLetterOperations,
  ...input: Input
) => Promise<ControlAnswer> | ControlAnswer

async function withDeadLetters({ source }: RouteRequest<unknown>, work: Work<[]>): Promise<ControlAnswer> {
  const { deadLetters } = source.stages
  return deadLetters ? work(deadLetters) : starting()
}

function withSelection(
  request: RouteRequest<Selection>,
  work: Work<[query: DeadLetterQuery]>,
): Promise<ControlAnswer> {
  return withDeadLetters(request, (deadLetters) => work(deadLetters, deadLetterQueryOf(request.values)))
}

function withBody(request: RouteRequest<unknown>, work: Work<[body: string]>): Promise<ControlAnswer> {
  return withDeadLetters(request, async (deadLetters) => {
    const body = request.sentBody ?? (await bodyOf(request.request, bodyBytesMax))
    if (typeof body === 'string') return work(deadLetters, body)
    if (body !== null) {
      if (isUtf8(body)) return work(deadLetters, body.toString())
      return badRequest('The body of the request is not UTF-8.', act)
    }
    return bodyTooLarge(bodyBytesMax, act)
  })
}
