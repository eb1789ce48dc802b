// payload-validation.ts: checks whether a text is a payload that may be sent. Documented fields
// (ingestion-api.md 2.1 to 2.5) must have their type and range; other fields are allowed. The service makes
// the final check.
//
// The payloadId names a reading: of which device, at which moment. While an edited payload is the same
// reading it keeps its payloadId: support finds what was refused before, and a resend of the device is a
// duplicate. With another device, asset or time it is another reading, which may have a payload of its own
// already, so it gets a payloadId made from its content.

import { hash } from 'node:crypto'
import { z } from 'zod'
import { GatewayError } from '../std/gateway-error.ts'
import { payloadHead, type MappedPayload } from '../domain/payload.ts'
import type { PayloadId, ProviderName } from '../domain/ids.ts'

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
/** Far above any real payload, and small enough for a batch. */
const bytesMax = 256 * 1024

const text = z.string().min(1)

const signal = z.looseObject({
  id: z.string().regex(uuid, 'must be a UUID in lower case').optional(),
  type: text,
  value: z.string().regex(/^-?\d+(\.\d+)?$/, 'must be a decimal number in a string'),
  valueUnit: text.optional(),
  assetPart: text.optional(),
})

const payloadSchema = z
  .looseObject({
    payloadId: z.string().regex(uuid, 'must be a UUID in lower case'),
    carrier: text.optional(),
    signalTimestamp: z.int().min(0),
    assetIdentifier: z.looseObject({ id: text, type: text.optional(), operator: text.optional() }).optional(),
    deviceIdentifier: z
      .looseObject({ id: text, manufacturer: text.optional(), model: text.optional() })
      .optional(),
    gps: z
      .looseObject({
        latitude: z.number().min(-90).max(90),
        longitude: z.number().min(-180).max(180),
        speed: z.number().optional(),
        speedUnits: text.optional(),
        heading: z.number().min(0).max(360).optional(),
        inMotion: z.boolean().optional(),
      })
      .optional(),
    signals: z.array(signal).min(1).optional(),
  })
  .refine((payload) => payload.assetIdentifier !== undefined || payload.deviceIdentifier !== undefined, {
    message: 'it names neither a device nor an asset',
  })
  .refine((payload) => payload.gps !== undefined || payload.signals !== undefined, {
    message: 'it has neither gps nor signals',
  })

type Payload = z.output<typeof payloadSchema>

/** Each problem is one sentence. */
export type PayloadValidation =
  { kind: 'payload'; payload: Payload } | { kind: 'invalid'; problems: readonly string[] }

/** `payloadId` is added where `value` has none. */
export function validatePayload(value: unknown, payloadId: PayloadId | null): PayloadValidation {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  if (!isObject) return { kind: 'invalid', problems: ['it is not a JSON object'] }
  const given: unknown =
    payloadId === null || Object.hasOwn(value, 'payloadId') ? value : { payloadId, ...value }
  const result = payloadSchema.safeParse(given)
  if (!result.success)
    return {
      kind: 'invalid',
      problems: result.error.issues.map(({ path, message }) =>
        path.length === 0 ? message : `${path.join('.')}: ${message}`,
      ),
    }
  if (Buffer.byteLength(JSON.stringify(given)) > bytesMax)
    return { kind: 'invalid', problems: [`it has more than ${bytesMax} bytes`] }
  // As written: the output of the schema has another order of keys.
  return { kind: 'payload', payload: given as Payload }
}

export function invalidDeadLetter(what: string, problems: readonly string[]): GatewayError {
  return new GatewayError('DEAD_LETTER_INVALID', {
    what,
    why: problems.slice(0, 20).join('; '),
    act: 'Nothing was changed. Correct it and try again.',
  })
}

/** Same device, same asset, same moment. */
export function isSameReading(before: unknown, after: Payload): boolean {
  const parts = ['signalTimestamp', 'deviceIdentifier.id', 'assetIdentifier.id']
  return parts.every((path) => memberAt(before, path) === memberAt(after, path))
}

/** Made from the content, so the same edit twice gives the same payloadId. RFC 9562, version 8. */
export function editedPayloadId(provider: ProviderName, payload: Payload): PayloadId {
  const { payloadId: _former, ...content } = payload
  const digest = hash('sha256', JSON.stringify(['edited', provider, content]), 'hex')
  const variant = ((parseInt(digest.charAt(16), 16) & 0x3) | 0x8).toString(16)
  const tail = `${variant}${digest.slice(17, 20)}-${digest.slice(20, 32)}`
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-8${digest.slice(13, 16)}-${tail}` as PayloadId
}

export function deviceOf(payload: unknown): string {
  const id = memberAt(payload, 'deviceIdentifier.id') ?? memberAt(payload, 'assetIdentifier.id')
  return typeof id === 'string' ? id : ''
}

/** Without a device time, or the spool would take it for late data and put it into a backfill lane. */
export function requeuedPayload(
  provider: ProviderName,
  payloadId: PayloadId,
  payload: object,
): MappedPayload {
  const { payloadId: _first, ...rest } = payload as Record<string, unknown>
  const members = JSON.stringify(rest).slice(1)
  const json = `${payloadHead}${payloadId}"${members === '}' ? '' : ','}${members}`
  return {
    provider,
    device: deviceOf(payload),
    deviceTime: null,
    payloadId,
    windowKey: payloadId.replaceAll('-', ''),
    duplicateRule: 'always',
    json,
  }
}

function memberAt(value: unknown, path: string): unknown {
  let at: unknown = value
  for (const name of path.split('.')) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined
    at = (at as Record<string, unknown>)[name]
  }
  return at
}
