// control-dead-letters.ts: what can be done with dead letters over HTTP; see control.ts for who may.
//
//   POST /control/dead-letters/show?id=            one, whole
//   POST /control/dead-letters/requeue?WHICH&dryRun=1
//   POST /control/dead-letters/export?WHICH        NDJSON, as long as the reader reads
//   POST /control/dead-letters/purge?WHICH&yes=1   without `yes` it says what would go
//   POST /control/dead-letters/edit?id=            the body is the payload that takes its place
//   POST /control/dead-letters/import?dryRun=1       the body is NDJSON, at most `bodyBytesMax`
//
// WHICH is id (more than once), stage, reason, device, source, provider, since, until (epoch milliseconds), or `all=1`:
// nothing said does not mean everything.

import type { IncomingMessage } from 'node:http'
import type { DeadLetterQuery, DeadLetterOperations } from '../../dead-letters/dead-letters.ts'
import type { ControlAnswer } from './control.ts'
import { readLetterParams } from './dead-letter-params.ts'

/** Of `import` and `edit`; the command sends a file in such parts. */
const bodyBytesMax = 8 * 1024 * 1024

/** The work of these has a body. */
export function takesBody(path: string): boolean {
  return path === '/control/dead-letters/edit' || path === '/control/dead-letters/import'
}

/** Null where there is nothing of this name. */
export async function answerLetters(
  letters: DeadLetterOperations,
  name: string,
  params: URLSearchParams,
  { request, signal }: { request: IncomingMessage; signal: AbortSignal },
): Promise<ControlAnswer | null> {
  const flag = (key: string) => params.get(key) === '1'
  switch (name) {
    case 'show': {
      const entry = await letters.show(params.get('id') ?? '')
      if (entry !== null) return { status: 200, value: entry }
      return refused(
        404,
        `There is no dead letter ${params.get('id') ?? ''}.`,
        'It was requeued, mapped or deleted.',
      )
    }
    case 'requeue': {
      const query = whichOf(params)
      if (typeof query === 'string') return misunderstood(query)
      return { status: 200, value: await letters.requeue(query, { dryRun: flag('dryRun') }, signal) }
    }
    case 'export': {
      const query = whichOf(params)
      if (typeof query === 'string') return misunderstood(query)
      return { status: 200, lines: letters.export(query) }
    }
    case 'purge': {
      const query = whichOf(params)
      if (typeof query === 'string') return misunderstood(query)
      return { status: 200, value: await letters.purge(query, { dryRun: !flag('yes') }, signal) }
    }
    case 'edit':
    case 'import': {
      const text = await bodyOf(request)
      if (text === null)
        return refused(413, 'The request is too large.', `At most ${bodyBytesMax} bytes are taken at once.`)
      if (name === 'edit')
        return { status: 200, value: await letters.edit(params.get('id') ?? '', text, signal) }
      return { status: 200, value: await letters.importLines(text, { dryRun: flag('dryRun') }, signal) }
    }
    default:
      return null
  }
}

function whichOf(params: URLSearchParams): DeadLetterQuery | string {
  const query = readLetterParams(params, ['all', 'dryRun', 'yes'])
  if (typeof query === 'string') return query
  if (Object.keys(query).length === 0 && params.get('all') !== '1')
    return 'It does not say which letters are meant; all=1 means all of them.'
  return query
}

/** Null where it is too large. Who is too slow is cut off by the limits of http.ts. */
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

function misunderstood(why: string): ControlAnswer {
  return refused(400, 'The request is not understood.', why)
}

function refused(status: number, what: string, why: string): ControlAnswer {
  return { status, value: { what, why, act: 'Nothing was changed.' } }
}
