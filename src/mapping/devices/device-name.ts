// device-name.ts: reads the name of the device of a record, and checks it.

import { quote } from '../../std/quote.ts'
import type { RecordContext } from '../types.ts'
import type { DeviceRule } from './device-rule.ts'

/** Longer names would fill the caches and the log. */
const deviceLengthMax = 256

/** Null where the record was refused. */
export function deviceNamed(device: DeviceRule, context: RecordContext): string | null {
  const { record, root, up, captures, sender } = context
  const name =
    device.kind === 'record' ? device.name(record, root, up, captures, sender) : device.name(captures, sender)
  if (name === '') return context.refuse('NO_DEVICE', 'The device name is missing or empty.')
  if (name === null)
    return context.refuse('BAD_DEVICE', 'The device name is neither a text nor a whole number.')
  if (name.length <= deviceLengthMax) return name
  return context.refuse(
    'BAD_DEVICE',
    `The device name ${quote(name, 40)} has more than ${deviceLengthMax} characters.`,
  )
}
