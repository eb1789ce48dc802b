// event-fields.ts: how a field of an event is described, and the fields that many events share.

import type { ProviderName } from '../ids.ts'

/** A field of an event. `type` is never set; it carries the type of the value. */
export type Field<Value> = { meaning: string; type?: Value }

export function field<Value>(meaning: string): Field<Value> {
  return { meaning }
}

export function count(of: string): Field<number> {
  return field(`number of ${of}`)
}

export const source = field<string>('name of the source')
export const device = field<string>('key of the device')
export const provider = field<ProviderName>('name of the provider')
export const requestId = field<string | null>('requestId that the service sent; null without one')
export const why = field<string>('cause, as far as known')
