// answers.ts: what the service says. The specification shows the bodies of 200 and 202; of the others it shows
// that there is a requestId, and validationErrorDetails in a 400. The rest of their shape is a choice:
//
//   { "requestId": "…", "errorMessage": "…", "reason": "region_set", "validationErrorDetails": [ … ] }
//
// `reason` is a stable word for programs, `errorMessage` a sentence for people.

import type { FieldProblem } from '../payload-check.ts'

export type Answer = {
  status: number
  /** Of a refusal; null where something was taken. */
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

/** A moment as HTTP headers write it. */
export function dateAt(epochMs: number): string {
  return new Date(epochMs).toUTCString()
}
