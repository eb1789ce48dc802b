// form-body.ts: reads the form that a page sends, and compares its token with that of the session.

import type { IncomingMessage } from 'node:http'
import { badRequest, problem, type JsonAnswer } from '../json-answer.ts'
import { isToken } from '../request-rights/login-sessions.ts'
import type { Access, RequestRights } from '../request-rights/request-rights.ts'
import type { Route } from './route.ts'

const formType = 'application/x-www-form-urlencoded'

/** The fields; or the refusal. */
export async function readForm(
  request: IncomingMessage,
  { bytesMax, token: needed }: NonNullable<Route['form']>,
  { access, rights }: { access: Access; rights: Pick<RequestRights, 'refuseForm'> },
): Promise<URLSearchParams | JsonAnswer> {
  const type = (request.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase()
  if (type !== formType) return badRequest('The body is no form.', `Send it as ${formType}.`)
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length
    if (bytes > bytesMax) return tooLarge(bytesMax)
    parts.push(part)
  }
  const form = new URLSearchParams(Buffer.concat(parts).toString('utf8'))
  const { token } = access
  if (needed === 'none' || token === null) return form
  const given = form.getAll('token')
  return given.length === 1 && isToken({ token }, given[0] ?? '') ? form : rights.refuseForm(request, access)
}

function tooLarge(bytesMax: number): JsonAnswer {
  const why = `At most ${bytesMax} bytes are accepted.`
  return problem(413, 'BODY_TOO_LARGE', { what: 'The form is too large.', why, act: 'Send less.' })
}
