// control-dead-letters.ts: changes of dead letters over HTTP.
//
//   POST /control/dead-letters/remap?dryRun=1&reason=R&source=S    maps dead letters again
//   POST /control/dead-letters/show?id=            one, whole
//   POST /control/dead-letters/requeue?WHICH&dryRun=1
//   POST /control/dead-letters/export?WHICH        NDJSON, while the client reads
//   POST /control/dead-letters/purge?WHICH&yes=1   without `yes` it reports what it would delete
//   POST /control/dead-letters/edit?id=            the body is the payload that replaces it
//   POST /control/dead-letters/import?dryRun=1     the body is NDJSON, at most `bodyBytesMax`
//
// A larger file is imported in parts: import-plan with each part, import-check, and import with each part
// again. The first import-plan answers with a name for `import=`, which the later requests repeat:
//
//   POST /control/dead-letters/import-plan?import=      the body is NDJSON; nothing is imported
//   POST /control/dead-letters/import-check?import=     compares it with the spool and the ledger;
//                                                       withoutLedger=1 leaves the ledger out
//   POST /control/dead-letters/import?import=&dryRun=1  imports what is new
//
// WHICH is id (more than once), stage, reason, device, source, provider, since, until, or `all=1`: without a
// selection nothing is selected. Many ids may stand in the body: ids-in-body.ts.

import { isUtf8 } from 'node:buffer'
import { z } from 'zod'
import { isoTimes } from '../../../std/iso-times.ts'
import type { DeadLetterOperations, DeadLetterQuery } from '../../../dead-letters/dead-letters.ts'
import {
  deadLetterSchema,
  editSchema,
  importCheckSchema,
  importPlanSchema,
  importSchema,
  purgeSchema,
  remapSchema,
  requeueSchema,
} from '../answer-schemas/control-schemas.ts'
import { deadLetterParameters, deadLetterQueryOf } from '../dead-letter-params.ts'
import { badRequest, notFound, ok, starting } from '../json-answer.ts'
import { flag, requiredText, text } from '../http-routing/parameters.ts'
import type { RouteRequest } from '../http-routing/route.ts'
import { controlRoute, type ControlAnswer, type ControlRoute } from './control-route.ts'
import { bodyOf, bodyTooLarge } from './ids-in-body.ts'

/** Of `import` and `edit`; the command sends a file in such parts. */
const bodyBytesMax = 8 * 1024 * 1024

const act = 'Nothing was changed.'

const which = { ...deadLetterParameters, all: flag('Selects all dead letters.') }
const dryRun = flag('Only reports what would be done.')
const token = text('Name of the import that the lines belong to, by import-plan.')
const withoutLedger = flag('Imports although the ledger cannot say what was delivered.')
const ndjson = { contentType: 'application/x-ndjson', means: 'Lines of an export.' }

export const deadLetterRoutes: readonly ControlRoute[] = [
  controlRoute({
    name: 'dead-letters/remap',
    summary: 'Maps dead letters again with the mapping in force.',
    parameters: z.strictObject({
      dryRun,
      reason: text('Only dead letters with this reason.'),
      source: text('Only dead letters of this source.'),
    }),
    answers: { 200: { means: 'What was mapped, or would be.', schema: remapSchema } },
    async answer({ values: { dryRun: dry, reason = null, source = null }, signal }, control) {
      return ok(await control.remap({ dryRun: dry, reason, source }, signal))
    },
  }),
  controlRoute({
    name: 'dead-letters/show',
    summary: 'Shows one dead letter, whole.',
    shows: true,
    changesNothing: true,
    parameters: z.strictObject({ id: requiredText('Its id.') }),
    answers: { 200: { means: 'The dead letter.', schema: deadLetterSchema } },
    answer: (request) =>
      withDeadLetters(request, async (deadLetters) => {
        const { id } = request.values
        const entry = await deadLetters.show(id)
        if (entry !== null) return ok(isoTimes(entry))
        return notFound(`There is no dead letter ${id}.`, 'It was requeued, mapped or deleted.', act)
      }),
  }),
  controlRoute({
    name: 'dead-letters/requeue',
    idsInBody: true,
    summary: 'Sends dead letters again.',
    parameters: z.strictObject({ ...which, dryRun }),
    answers: { 200: { means: 'What was requeued, or would be.', schema: requeueSchema } },
    answer: (request) =>
      withSelection(request, async (deadLetters, query) =>
        ok(await deadLetters.requeue(query, { dryRun: request.values.dryRun }, request.signal)),
      ),
  }),
  controlRoute({
    name: 'dead-letters/export',
    idsInBody: true,
    summary: 'Streams dead letters, whole, one JSON line each.',
    shows: true,
    parameters: z.strictObject(which),
    answers: { 200: { means: 'The dead letters.', contentType: 'application/x-ndjson; charset=utf-8' } },
    answer: (request) =>
      withSelection(request, (deadLetters, query) => ({ lines: deadLetters.export(query) })),
  }),
  controlRoute({
    name: 'dead-letters/purge',
    idsInBody: true,
    summary: 'Deletes dead letters.',
    parameters: z.strictObject({
      ...which,
      dryRun,
      yes: flag('Does it. Without it, the answer reports what would be deleted.'),
    }),
    answers: { 200: { means: 'What was deleted, or would be.', schema: purgeSchema } },
    answer: (request) =>
      withSelection(request, async (deadLetters, query) => {
        const { dryRun: dry, yes } = request.values
        return ok(await deadLetters.purge(query, { dryRun: dry || !yes }, request.signal))
      }),
  }),
  controlRoute({
    name: 'dead-letters/edit',
    summary: 'Replaces the payload of a dead letter and sends it again.',
    parameters: z.strictObject({ id: requiredText('Its id.') }),
    body: { contentType: 'application/json', means: 'The payload that replaces it.' },
    answers: { 200: { means: 'The new payloadId.', schema: editSchema } },
    answer: (request) =>
      withBody(request, async (deadLetters, body) =>
        ok(await deadLetters.edit(request.values.id, body, request.signal)),
      ),
  }),
  controlRoute({
    name: 'dead-letters/import-plan',
    summary: 'Checks the lines of an export before an import in parts.',
    changesNothing: true,
    parameters: z.strictObject({ import: token }),
    body: ndjson,
    answers: { 200: { means: 'The name of the import.', schema: importPlanSchema } },
    answer: (request) =>
      withBody(request, async (deadLetters, body) =>
        ok(await deadLetters.planImport(body, request.values.import, request.signal)),
      ),
  }),
  controlRoute({
    name: 'dead-letters/import-check',
    summary: 'Compares the planned lines with the spool and the ledger.',
    changesNothing: true,
    parameters: z.strictObject({
      import: requiredText('Name of the import, by import-plan.'),
      withoutLedger,
    }),
    answers: { 200: { means: 'What is known of the payloads.', schema: importCheckSchema } },
    answer: (request) =>
      withDeadLetters(request, async (deadLetters) => {
        const { import: name, withoutLedger: without } = request.values
        const check = await deadLetters.checkImport(name, { withoutLedger: without }, request.signal)
        return ok(isoTimes(check))
      }),
  }),
  controlRoute({
    name: 'dead-letters/import',
    summary: 'Imports the lines of an export.',
    parameters: z.strictObject({ import: token, dryRun, withoutLedger }),
    body: ndjson,
    answers: { 200: { means: 'What was imported, or would be.', schema: importSchema } },
    answer: (request) =>
      withBody(request, async (deadLetters, body) => {
        const { import: name, dryRun: dry, withoutLedger: without } = request.values
        const options = { dryRun: dry, token: name, withoutLedger: without }
        return ok(await deadLetters.importLines(body, options, request.signal))
      }),
  }),
]

type Work<Input extends unknown[]> = (
  deadLetters: DeadLetterOperations,
  ...input: Input
) => Promise<ControlAnswer> | ControlAnswer

async function withDeadLetters({ source }: RouteRequest<unknown>, work: Work<[]>): Promise<ControlAnswer> {
  const { deadLetters } = source.stages
  return deadLetters ? work(deadLetters) : starting()
}

type Which = Parameters<typeof deadLetterQueryOf>[0] & { all: boolean }

function withSelection(
  request: RouteRequest<Which>,
  work: Work<[query: DeadLetterQuery]>,
): Promise<ControlAnswer> {
  const query = deadLetterQueryOf(request.values)
  return withDeadLetters(request, (deadLetters) =>
    Object.keys(query).length === 0 && !request.values.all
      ? badRequest('The request selects no dead letters. all=1 selects all of them.', act)
      : work(deadLetters, query),
  )
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
