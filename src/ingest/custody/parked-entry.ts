// parked-entry.ts: the bytes of what is parked in the engine: one payload or one message.
//
//   {"v":1,"id":"32 hex digits","kind":"payload","provider":"default","attempts":2,...}\n
//   {"payloadId":"..."}                                        the payload as it was stored
//
//   {"v":1,"id":"...","kind":"message","shelf":"quarantine:default","reason":...}\n
//   {"topic":...,"arrivedAt":...,...}\n                         the envelope without its bytes
//   ...                                                        the bytes of the message, as they came
//
// Nothing is base64 there: an entry is hardly larger than its message, so what the engine took once it takes
// again.
//
// The id tells an entry that the engine delivers again from another one. It is made of what is parked and of
// when it came to where it waited: an entry that is stored again, because its confirm was lost, has the same
// one, and what is parked a second time has another one. A payload keeps its bytes and its
// attempts, a message its arrival and its shelf.

import { hash } from 'node:crypto'
import type { EpochMs } from '../../std/clock.ts'
import type { PayloadId, ProviderName } from '../../domain/ids.ts'
import { isShelfName } from '../../domain/kept-store.ts'
import { isEnvelope, type KeptMessage } from '../../domain/message.ts'
import { payloadHead, type MappedPayload } from '../../domain/payload.ts'
import type { KeptEntry } from '../../spool/spool.ts'
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
  devices?: readonly string[]
  reason?: string
  detail?: string
}

type Parking = { parkedAt: EpochMs; member: string }

const version = 1
const newline = Buffer.from('\n')

export function parkedPayload(payload: ReturnedPayload, { parkedAt, member }: Parking): StoredEntry {
  const { provider, payloadId, json, attempts, committedAt } = payload
  const head = {
    v: version,
    id: idOf(member, provider, payloadId, attempts, committedAt),
    kind: 'payload',
    parkedAt,
    member,
    provider,
    payloadId,
    attempts,
  }
  return entryOf(head, json)
}

export function parkedMessage(entry: KeptEntry, { parkedAt, member }: Parking): StoredEntry {
  const { id: place, keptAt, message } = entry
  const { shelf, provider, device, devices, reason, detail, envelope } = message
  const id = idOf(member, shelf, place, keptAt, envelope.topic, envelope.arrivedAt)
  const about = { provider, shelf, device, ...(devices && { devices }), reason, detail }
  const head = { v: version, id, kind: 'message', parkedAt, member, ...about }
  const { bytes, ...rest } = envelope
  const content = [Buffer.from(JSON.stringify(rest)), newline, Buffer.from(bytes, 'base64')]
  return entryOf(head, Buffer.concat(content))
}

function idOf(...parts: readonly (string | number | null)[]): string {
  return hash('sha256', JSON.stringify(parts), 'hex').slice(0, 32)
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

/** The entry, or what is wrong with it: another version or another program may have written it. */
export function readParked(body: Buffer): ParkedEntry | string {
  const end = body.indexOf(0x0a)
  if (end < 0) return 'it has no second line'
  const head = parsed(body.toString('utf8', 0, end))
  if (!isRecord(head)) return 'its first line is not a JSON object'
  const { v, id, parkedAt, kind } = head
  if (v !== version) return `it has the version ${JSON.stringify(v)}, and this gateway reads ${version}`
  if (typeof id !== 'string' || !/^[0-9a-f]{32}$/.test(id)) return 'its id is missing'
  if (typeof parkedAt !== 'number' || !Number.isFinite(parkedAt)) return 'its time is missing'
  switch (kind) {
    case 'message': {
      const message = readMessage(head, body, end + 1)
      return typeof message === 'string' ? message : { kind, id, parkedAt, message }
    }
    case 'payload': {
      const payload = readPayload(head, body.toString('utf8', end + 1))
      return typeof payload === 'string'
        ? payload
        : { kind, id, parkedAt, payload: { ...payload, windowKey: id } }
    }
    default:
      return 'its kind is neither payload nor message'
  }
}

function readMessage(head: Record<string, unknown>, body: Buffer, start: number): KeptMessage | string {
  const end = body.indexOf(0x0a, start)
  const rest = parsed(body.toString('utf8', start, Math.max(start, end)))
  if (!isRecord(rest)) return 'its envelope is not a JSON object'
  const envelope = { ...rest, bytes: body.toString('base64', end + 1) }
  const { shelf, provider, device = null, devices, reason = '', detail = '' } = head
  if (typeof shelf !== 'string' || !isShelfName(shelf)) return 'its shelf is not known'
  if (!isEnvelope(envelope)) return 'its envelope is incomplete'
  if (!isTextOrNull(provider) || !isTextOrNull(device)) return 'its provider or its device is not a text'
  if (devices !== undefined && !isTextList(devices)) return 'its devices are no list of texts'
  if (typeof reason !== 'string' || typeof detail !== 'string') return 'its reason is not a text'
  const kept = { shelf, provider: provider as ProviderName | null, device, reason, detail, envelope }
  return devices === undefined ? kept : { ...kept, devices }
}

function readPayload(
  { provider, payloadId, attempts = 0 }: Record<string, unknown>,
  json: string,
): (MappedPayload & { attempts: number }) | string {
  if (typeof provider !== 'string' || provider === '' || provider.length > providerLengthMax)
    return 'it has no provider'
  if (typeof payloadId !== 'string' || !uuid.test(payloadId)) return 'its payloadId is not a UUID'
  if (!json.startsWith(`${payloadHead}${payloadId}"`)) return 'its payload has another payloadId'
  if (!isRecord(parsed(json))) return 'its payload is not a JSON object'
  if (typeof attempts !== 'number' || !Number.isSafeInteger(attempts) || attempts < 0)
    return 'its attempts are not a number'
  return {
    provider: provider as ProviderName,
    // The lane of fresh payloads: it has waited long enough.
    deviceTime: null,
    device: '',
    payloadId: payloadId as PayloadId,
    windowKey: '',
    // The id of the entry is what decides whether it came before.
    duplicateRule: 'resend',
    json,
    attempts,
  }
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const providerLengthMax = 200

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isTextList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string')
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || typeof value === 'string'
}
