// device-event.ts: the events of what devices send: models that are not known, and values that cannot be.

import { count, device, field, source } from './event-field.ts'

const shown = field<string>('one of the devices; empty for none')

export const deviceEventFields = {
  model_unknown: {
    source,
    devices: count('devices without a known model'),
    what: field<string>('fields that are omitted'),
  },
  odometer_reset: {
    source,
    device,
    asset: field<string>('asset of the device'),
    signal: field<string>('type of the signal, and its part'),
    before: field<number>('last plausible reading, in the unit that is sent'),
    after: field<number>('reading that counts from now on'),
    withheld: count('readings that were not sent'),
    why: field<'agreed' | 'limit'>('the readings agree with each other, or as many as allowed were withheld'),
  },
  values_withheld: {
    source,
    devices: count('devices most of whose values of a field are not plausible'),
    device: shown,
    field: field<string>('field of that device'),
    reason: field<string>('why, for most of the values'),
    withheld: count('values of the field that are not plausible'),
    records: count('records of the device in the same time'),
  },
  positions_swapped: {
    source,
    devices: count('devices whose latitude and longitude look swapped'),
    device: shown,
  },
} as const
