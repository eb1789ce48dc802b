// answer-text.ts: foreign text and values of an answer, made safe for a log, a condition or a dead letter: of
// bounded length, without control characters.

export type AnswerHeaders = Record<string, string | string[] | undefined>
export type FieldDetail = { field: string; message: string }

export const messageCharsMax = 300
export const detailsMax = 50
/** More is no wait that a person would believe. */
const retryAfterMaxMs = 3650 * 86_400_000

export function excerpt(value: unknown, charsMax: number): string {
  if (typeof value !== 'string') return ''
  // Control characters could forge lines in a log or move a terminal's cursor.
  const clean = value
    .slice(0, 2 * charsMax)
    .replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .trim()
  return clean.length > charsMax ? `${clean.slice(0, charsMax - 1)}…` : clean
}

/** Names only the type of a list or object: JSON.stringify throws on deep nesting. */
export function shown(value: unknown): string {
  if (value === undefined) return 'missing'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'string') return JSON.stringify(excerpt(value, 40))
  return typeof value === 'object' && value !== null ? 'an object' : JSON.stringify(value)
}

export function fieldDetail(field: unknown, message: unknown): FieldDetail {
  return { field: excerpt(field, 120), message: excerpt(message, messageCharsMax) }
}

export function readDetails(list: unknown): FieldDetail[] {
  if (!Array.isArray(list)) return []
  return list.slice(0, detailsMax).map((entry) => {
    const fields = asRecord(entry)
    return fieldDetail(fields?.['field'], fields?.['message'])
  })
}

export function one(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value
}

export function asRecord(value: unknown): Record<string, unknown> | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  return value as Record<string, unknown>
}

/** `found`: requestId or RequestId of the body. */
export function requestIdOf(headers: AnswerHeaders, found: unknown): string | null {
  const id = found ?? one(headers['x-amzn-requestid']) ?? one(headers['x-request-id'])
  const text = typeof id === 'number' ? String(id) : excerpt(id, 128)
  return text === '' ? null : text
}

/** The encoding of the body, which was not asked for; null without one. */
export function encodingOf(headers: AnswerHeaders): string | null {
  const encoding = one(headers['content-encoding'])
  return encoding === undefined || encoding === '' || encoding.toLowerCase() === 'identity' ? null : encoding
}

/** Seconds, or a date; a date counts from the Date of the answer, since our clock may be wrong. */
export function retryAfterOf(headers: AnswerHeaders, now: number): number | null {
  const text = one(headers['retry-after'])?.trim()
  if (text === undefined || text === '') return null
  if (/^\d+(\.\d+)?$/.test(text)) return Math.min(Number(text) * 1000, retryAfterMaxMs)
  // All three forms of a date begin with the day of the week (RFC 9110, 5.6.7); Date.parse() accepts more.
  const until = /^[A-Za-z]{3,9},? /.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(until)) return null
  const answeredAt = Date.parse(one(headers['date']) ?? '')
  const waitMs = until - (Number.isNaN(answeredAt) ? now : answeredAt)
  return Math.min(Math.max(waitMs, 0), retryAfterMaxMs)
}
