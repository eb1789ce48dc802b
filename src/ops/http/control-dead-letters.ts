// control-dead-letters.ts: changes of dead letters over HTTP. Who may use them: control-routes.ts.
//
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
// WHICH is id (more than once), stage, reason, device, source, provider, since, until (epoch milliseconds),
// or `all=1`: without a selection nothing is selected.

import type { IncomingMessage } from 'node:http'
import { formatSize } from '../../std/quantity.ts'
import type { DeadLetterQuery, DeadLetterOperations } from '../../dead-letters/dead-letters.ts'
import { readDeadLetterParams } from './dead-letter-params.ts'
import { badRequest, ok, problem, type JsonAnswer } from './json-answer.ts'

/** Of `import` and `edit`; the command sends a file in such parts. */
const bodyBytesMax = 8 * 1024 * 1024

const act = 'Nothing was changed.'

export function takesBody(path: string): boolean {
  return /^\/control\/dead-letters\/(edit|import|import-plan)$/.test(path)
}

/** Lines are sent while they are made. Null where there is nothing of this name. */
export async function changeDeadLetters(
  deadLetters: DeadLetterOperations,
  name: string,
  params: URLSearchParams,
  { request, signal }: { request: IncomingMessage; signal: AbortSignal },
): Promise<JsonAnswer | { lines: AsyncIterable<string> } | null> {
  const dryRun = params.get('dryRun') === '1'
  const id = params.get('id') ?? ''
  switch (name) {
    case 'show': {
      const entry = await deadLetters.show(id)
      if (entry !== null) return ok(entry)
      const why = 'It was requeued, mapped or deleted.'
      return problem(404, { what: `There is no dead letter ${id}.`, why, act })
    }
    case 'requeue':
    case 'export':
    case 'purge': {
      const query = queryIn(params)
      if (typeof query === 'string') return badRequest(query, act)
      if (name === 'export') return { lines: deadLetters.export(query) }
      if (name === 'requeue') return ok(await deadLetters.requeue(query, { dryRun }, signal))
      return ok(await deadLetters.purge(query, { dryRun: params.get('yes') !== '1' }, signal))
    }
    case 'import-check': {
      const withoutLedger = params.get('withoutLedger') === '1'
      return ok(await deadLetters.checkImport(params.get('import') ?? '', { withoutLedger }, signal))
    }
    case 'edit':
    case 'import-plan':
    case 'import': {
      const text = await bodyOf(request)
      if (text === null) {
        const why = `At most ${formatSize(bodyBytesMax)} are accepted at once.`
        return problem(413, { what: 'The request is too large.', why, act })
      }
      if (name === 'edit') return ok(await deadLetters.edit(id, text, signal))
      const token = params.get('import') ?? undefined
      if (name === 'import-plan') return ok(await deadLetters.planImport(text, token, signal))
      const withoutLedger = params.get('withoutLedger') === '1'
      return ok(await deadLetters.importLines(text, { dryRun, token, withoutLedger }, signal))
    }
    default:
      return null
  }
}

function queryIn(params: URLSearchParams): DeadLetterQuery | string {
  const query = readDeadLetterParams(params, ['all', 'dryRun', 'yes'])
  if (typeof query === 'string') return query
  if (Object.keys(query).length === 0 && params.get('all') !== '1')
    return 'The request selects no dead letters. all=1 selects all of them.'
  return query
}

/** Null where it is too large. The limits of http.ts end a slow one. */
async function bodyOf(request: IncomingMessage): Promise<string | null> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length
    if (bytes > bodyBytesMax) return null
    parts.push(part)
  }
  return Buffer.concat(parts).toString('utf8')
}
