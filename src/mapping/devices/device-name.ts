// device-name.ts: the name of the device that a record is about, checked.

import type { Sender } from '../../domain/message.ts'
import { quote } from '../../std/quote.ts'
import type { RecordContext } from '../reasons.ts'
import type { DeviceRule } from './device-rule.ts'
import type { Up } from '../path/path.ts'

/** Longer names are no names; they would fill the caches and the log. */
const deviceLengthMax = 256

/** Null where the record was refused. */
export function deviceNamed(
  device: DeviceRule,
  record: unknown,
  root: unknown,
  up: Up,
  captures: readonly string[],
  sender: Sender,
  context: RecordContext,
): string | null {
  const name =
    device.kind === 'record' ? device.name(record, root, up, captures, sender) : device.name(captures, sender)
  if (name === '') return context.refuse('NO_DEVICE', 'What names the device is missing or empty.')
  if (name === null)
    return context.refuse('BAD_DEVICE', 'What names the device is neither a text nor a whole number.')
  if (name.length <= deviceLengthMax) return name
  return context.refuse(
    'BAD_DEVICE',
    `The device's name ${quote(name, 40)} has more than ${deviceLengthMax} characters.`,
  )
}
