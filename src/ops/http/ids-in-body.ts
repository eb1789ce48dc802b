// ids-in-body.ts: the ids of a change in the body of its request: `{"id": ["…"]}`, as if they stood in the
// query. The head of a request is limited: some hundred ids do not fit into a URL.

import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import { formatSize } from '../../std/quantity.ts'
import { badRequest, problem, type JsonAnswer } from './json-answer.ts'

export const idsMax = 10_000
const idLengthMax = 4096
/** Ids have about 50 characters. */
const bytesMax = 2 * 1024 * 1024
const json = 'application/json'
const act = 'Nothing was changed. Send the rest with another request.'

export const idsBody = {
  contentType: json,
  means: `More ids, where they are too many for the URL: \`{"id": ["…"]}\`, at most ${idsMax}.`,
  isOptional: true,
} as const

const shape = z.strictObject({ id: z.array(z.string().min(1).max(idLengthMax)).max(idsMax) })

/** Without a body there are none; else the ids, or the refusal. */
export async function idsOf(request: IncomingMessage): Promise<readonly string[] | JsonAnswer> {
  const body = await bodyOf(request, bytesMax)
  if (body === null) return bodyTooLarge(bytesMax, act)
  if (body.length === 0) return []
  const [type = ''] = (request.headers['content-type'] ?? '').split(';', 1)
  if (type.trim().toLowerCase() !== json) return badRequest('The body is no JSON.', `Send it as ${json}.`)
  const read = shape.safeParse(parsed(body))
  if (read.success) return read.data.id
  return badRequest(
    `The body must be {"id": ["…"]} with at most ${idsMax} ids.`,
    'Nothing was changed. Other parameters stand in the query.',
  )
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString())
  } catch {
    // Refused by its shape.
    return null
  }
}

/** Null where it is too large. The limits of listening/ end a slow one. */
export async function bodyOf(request: IncomingMessage, most: number): Promise<Buffer | null> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length
    if (bytes > most) return null
    parts.push(part)
  }
  return Buffer.concat(parts)
}

export function bodyTooLarge(most: number, what: string): JsonAnswer {
  const why = `At most ${formatSize(most)} are accepted at once.`
  return problem(413, 'BODY_TOO_LARGE', { what: 'The request is too large.', why, act: what })
}
