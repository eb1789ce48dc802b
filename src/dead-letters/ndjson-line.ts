// ndjson-line.ts: dead letters, payloads and messages as lines of NDJSON, for export, import and salvage.
//
//   {"kind":"payload","provider":"default","device":"t-7","attempts":0,"deadLetter":{...},"payload":{...}}
//   {"kind":"message","shelf":null,"provider":null,"device":null,"deadLetter":{...},"envelope":{...}}
//
// `deadLetter` has what a dead letter holds beside its content: id, at, stage, reason, detail, batchId,
// requestId, failure. It is null for what salvage found in a lane or a shelf. `suspect` says why a
// payload may differ from what was stored. `batch` names the held batch of a payload. The content comes
// last, so that a terminal that cuts lines shows the rest.

import type { DeadLetter } from '../domain/dead-letter.ts'
import { isEnvelope, type Envelope, type KeptMessage } from '../domain/message.ts'
import type { DeadLetterEntry } from '../spool/spool.ts'
import { deviceOf } from './payload-validation.ts'

type Head = { id: string } & Pick<
  DeadLetter,
  'at' | 'stage' | 'reason' | 'detail' | 'batchId' | 'requestId' | 'failure'
>

/** A line of the right shape; its content is not checked. */
type ParsedLine =
  | { kind: 'payload'; provider: string | null; payload: unknown; suspect: string | null }
  | { kind: 'message'; envelope: Envelope }

export function exportLine({ id, deadLetter }: DeadLetterEntry): string {
  const { at, stage, reason, detail, provider, device, batchId, requestId, failure } = deadLetter
  const { envelope, payload } = deadLetter
  const head: Head = { id, at, stage, reason, detail, batchId, requestId, failure }
  if (envelope !== null)
    return lineOf({ kind: 'message', shelf: null, provider, device, deadLetter: head, envelope })
  return lineOf({ kind: 'payload', provider, device, attempts: 0, deadLetter: head, payload })
}

/** `json` is written as it was stored. */
export function payloadLine(found: {
  provider: string | null
  attempts: number
  json: string
  suspect: string | null
  batch: { batchId: string; reason: string; requestId: string | null } | null
}): string {
  const { provider, attempts, json, suspect, batch } = found
  const device = deviceOf(JSON.parse(json))
  const about = { kind: 'payload', provider, device, attempts, deadLetter: null }
  const marks = { ...(suspect === null ? {} : { suspect }), ...(batch === null ? {} : { batch }) }
  const head = JSON.stringify({ ...about, ...marks })
  return `${head.slice(0, -1)},"payload":${json}}\n`
}

export function messageLine({ shelf, provider, device, reason, detail, envelope }: KeptMessage): string {
  return lineOf({ kind: 'message', shelf, provider, device, reason, detail, deadLetter: null, envelope })
}

/** A message without a shelf. */
export function envelopeLine(envelope: Envelope): string {
  return lineOf({ kind: 'message', shelf: null, provider: null, device: null, deadLetter: null, envelope })
}

function lineOf(value: object): string {
  return `${JSON.stringify(value)}\n`
}

/** The line, or what is wrong with it. */
export function parseLine(text: string): ParsedLine | string {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return 'it is not JSON'
  }
  if (typeof value !== 'object' || value === null) return 'it is not a JSON object'
  const { kind, provider, payload, suspect, envelope } = value as Record<string, unknown>
  if (kind === 'payload') {
    if (typeof payload !== 'object' || payload === null) return 'its payload is not a JSON object'
    return { kind, payload, provider: textOrNull(provider), suspect: textOrNull(suspect) }
  }
  if (kind !== 'message') return 'its kind is neither payload nor message'
  if (!isEnvelope(envelope)) return 'its envelope is incomplete'
  return { kind, envelope }
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
