// parked-entry.ts: the bytes of what is parked in the engine: one payload or one message.
//
//   {"v":1,"id":"32 hex digits","kind":"payload","provider":"default","attempts":2,...}\n
//   {"payloadId":"..."}                                        the payload as it was stored
//
//   {"v":1,"id":"...","kind":"message","shelf":"quarantine:default","reason":...}\n
//   {"topic":...,"bytes":"base64",...}                         the envelope
//
// The id tells an entry that the engine delivers again from another one. A payload keeps its bytes and its
// attempts, a message its arrival and its shelf.

import { randomBytes } from 'node:crypto'
import type { EpochMs } from '../../std/clock.ts'
import type { PayloadId, ProviderName } from '../../domain/ids.ts'
import type { Envelope, KeptMessage, ShelfName } from '../../domain/message.ts'
import { payloadHead, type MappedPayload } from '../../domain/payload.ts'
import type { StoredEntry } from '../message-sources/types.ts'
import type { ReturnedPayload } from './types.ts'

export type ParkedEntry = { id: string; parkedAt: EpochMs } & (
  | { kind: 'payload'; payload: MappedPayload & { attempts: number } }
  | { kind: 'message'; message: KeptMessage }
)

type Head = {
  v: number
  id: string
  kind: string
  parkedAt: EpochMs
  member: string
  provider: string | null
  payloadId?: string
  attempts?: number
  shelf?: string
  device?: string | null
  reason?: string
  detail?: string
}

type Parking = { parkedAt: EpochMs; member: string }

const version = 1
const newline = Buffer.from('\n')

export function parkedPayload(payload: ReturnedPayload, { parkedAt, member }: Parking): StoredEntry {
  const { provider, payloadId, json, attempts } = payload
  const head = {
    v: version,
    id: newEntryId(),
    kind: 'payload',
    parkedAt,
    member,
    provider,
    payloadId,
    attempts,
  }
  return entryOf(head, json)
}

export function parkedMessage(message: KeptMessage, { parkedAt, member }: Parking): StoredEntry {
  const { shelf, provider, device, reason, detail, envelope } = message
  const about = { provider, shelf, device, reason, detail }
  const head = { v: version, id: newEntryId(), kind: 'message', parkedAt, member, ...about }
  return entryOf(head, Buffer.from(JSON.stringify(envelope)))
}

function newEntryId(): string {
  return randomBytes(16).toString('hex')
}

function entryOf(head: Head, content: Buffer): StoredEntry {
  const { kind, parkedAt, member, provider, attempts = 0, reason = '' } = head
  return {
    headers: {
      kind,
      provider: provider ?? '',
      ...(head.payloadId === undefined ? {} : { payload_id: head.payloadId }),
      attempts: String(attempts),
      reason,
      member,
      parked_at: new Date(parkedAt).toISOString(),
    },
    body: Buffer.concat([Buffer.from(JSON.stringify(head)), newline, content]),
  }
}

/** The entry, or what is wrong with it. */
export function readParked(body: Buffer): ParkedEntry | string {
  const end = body.indexOf(0x0a)
  if (end < 0) return 'it has no second line'
  let head: Head
  let content: unknown
  const json = body.toString('utf8', end + 1)
  try {
    head = JSON.parse(body.toString('utf8', 0, end)) as Head
    content = JSON.parse(json)
  } catch {
    return 'it is not JSON'
  }
  if (head.v !== version)
    return `it has the version ${JSON.stringify(head.v)}, and this gateway reads ${version}`
  if (!/^[0-9a-f]{32}$/.test(head.id) || !Number.isFinite(head.parkedAt))
    return 'its id or its time is missing'
  const { id, parkedAt } = head
  if (head.kind === 'message' && typeof head.shelf === 'string') {
    const message: KeptMessage = {
      shelf: head.shelf as ShelfName,
      provider: head.provider as ProviderName | null,
      device: head.device ?? null,
      reason: head.reason ?? '',
      detail: head.detail ?? '',
      envelope: content as Envelope,
    }
    return { kind: 'message', id, parkedAt, message }
  }
  if (head.kind !== 'payload' || head.provider === null) return 'its kind is neither payload nor message'
  if (!json.startsWith(payloadHead) || head.payloadId === undefined) return 'it has no payload'
  const payload: MappedPayload & { attempts: number } = {
    provider: head.provider as ProviderName,
    // The lane of fresh payloads: it has waited long enough.
    deviceTime: null,
    device: '',
    payloadId: head.payloadId as PayloadId,
    windowKey: id,
    // The id of the entry is what decides whether it came before.
    duplicateRule: 'resend',
    json,
    attempts: head.attempts ?? 0,
  }
  return { kind: 'payload', id, parkedAt, payload }
}
