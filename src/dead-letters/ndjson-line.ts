// ndjson-line.ts: dead letters, payloads and messages as lines of NDJSON.
//
//   {"kind":"payload","provider":"default","device":"truck-7","attempts":0,"letter":{...},"suspect":...,"payload":{...}}
//   {"kind":"message","shelf":null,"provider":null,"device":null,"letter":{...},"envelope":{...}}
//
// `letter` is what a dead letter says beside its content: id, at, stage, reason, detail, batchId, requestId, failure. It is
// null for what salvage found on the road. The content stands last, where it can be seen in a terminal that cuts lines.

import type { DeadLetter } from '../domain/dead-letter.ts'
import type { Envelope, KeptMessage } from '../domain/message.ts'
import type { DeadLetterEntry } from '../spool/spool.ts'
import { deviceOf } from './payload-validation.ts'

type DeadLetterHead = Pick<
  DeadLetter,
  'at' | 'stage' | 'reason' | 'detail' | 'batchId' | 'requestId' | 'failure'
> & {
  id: string
}

/** A line whose shape was looked at; what is in the content was not. */
export type ImportedLine =
  | {
      kind: 'payload'
      provider: string | null
      payload: unknown
      suspect: string | null
      letterId: string | null
    }
  | { kind: 'message'; envelope: Envelope; letterId: string | null }

export function exportLine({ id, deadLetter: letter }: DeadLetterEntry): string {
  const { at, stage, reason, detail, provider, device, batchId, requestId, failure, envelope, payload } =
    letter
  const told: DeadLetterHead = { id, at, stage, reason, detail, batchId, requestId, failure }
  if (envelope !== null)
    return `${JSON.stringify({ kind: 'message', shelf: null, provider, device, letter: told, envelope })}\n`
  return `${JSON.stringify({ kind: 'payload', provider, device, attempts: 0, letter: told, payload })}\n`
}

/** `json` stands in the line as it was stored. */
export function payloadLine(found: {
  provider: string | null
  attempts: number
  json: string
  suspect: string | null
}): string {
  const { provider, attempts, json, suspect } = found
  const device = deviceOf(JSON.parse(json))
  const head = {
    kind: 'payload',
    provider,
    device,
    attempts,
    letter: null,
    ...(suspect === null ? {} : { suspect }),
  }
  return `${JSON.stringify(head).slice(0, -1)},"payload":${json}}\n`
}

export function messageLine({ shelf, provider, device, reason, detail, envelope }: KeptMessage): string {
  return `${JSON.stringify({ kind: 'message', shelf, provider, device, reason, detail, letter: null, envelope })}\n`
}

/** The line, or what is wrong with it. */
export function parseLine(text: string): ImportedLine | string {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return 'it is no JSON'
  }
  if (typeof value !== 'object' || value === null) return 'it is no JSON object'
  const { kind, provider, payload, suspect, envelope, letter } = value as Record<string, unknown>
  const id = typeof letter === 'object' && letter !== null ? (letter as { id?: unknown }).id : null
  const letterId = typeof id === 'string' ? id : null
  if (kind === 'payload') {
    if (typeof payload !== 'object' || payload === null) return 'its payload is no JSON object'
    return {
      kind,
      provider: typeof provider === 'string' ? provider : null,
      payload,
      suspect: typeof suspect === 'string' ? suspect : null,
      letterId,
    }
  }
  if (kind === 'message')
    return isEnvelope(envelope) ? { kind, envelope, letterId } : 'its envelope is not whole'
  return 'its kind is neither payload nor message'
}

function isEnvelope(value: unknown): value is Envelope {
  if (typeof value !== 'object' || value === null) return false
  const { topic, bytes, qos, retain, dup, clientId, userName, certificateName, arrivedAt, source } =
    value as Record<string, unknown>
  const isTextOrNull = (one: unknown) => one === null || typeof one === 'string'
  return (
    typeof topic === 'string' &&
    typeof bytes === 'string' &&
    /^[A-Za-z0-9+/]*={0,2}$/.test(bytes) &&
    (qos === 0 || qos === 1 || qos === 2) &&
    typeof retain === 'boolean' &&
    typeof dup === 'boolean' &&
    typeof clientId === 'string' &&
    isTextOrNull(userName) &&
    isTextOrNull(certificateName) &&
    typeof arrivedAt === 'number' &&
    Number.isFinite(arrivedAt) &&
    isTextOrNull(source)
  )
}
