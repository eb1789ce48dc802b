// answers.ts: the bodies of the answers. The specification shows the bodies of 200 and 202; of the others
// only the requestId, and validationErrorDetails in a 400. The rest of their shape is our choice:
//
//   { "requestId": "…", "errorMessage": "…", "reason": "region_set", "validationErrorDetails": [ … ] }
//
// `reason` is a stable code for programs, `errorMessage` a sentence for people.

import type { FieldProblem } from '../payload-check.ts'

export type Answer = {
  status: number
  /** The reason of a refusal; null where payloads were accepted. */
  reason: string | null
  headers: Readonly<Record<string, string>>
  body: string
}

export type Refusal = {
  status: number
  reason: string
  message: string
  details?: readonly FieldProblem[]
  headers?: Readonly<Record<string, string>>
}

const jsonType = { 'content-type': 'application/json' } as const

export function jsonAnswer(status: number, body: string): Answer {
  return { status, reason: null, headers: jsonType, body }
}

export function refusal(requestId: string, { status, reason, message, details, headers }: Refusal): Answer {
  const body = {
    requestId,
    errorMessage: message,
    reason,
    ...(details ? { validationErrorDetails: details } : {}),
  }
  return { status, reason, headers: { ...jsonType, ...headers }, body: JSON.stringify(body) }
}

/** A time as HTTP headers write it. */
export function dateAt(epochMs: number): string {
  return new Date(epochMs).toUTCString()
}
