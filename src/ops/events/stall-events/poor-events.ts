// poor-events.ts: the events of devices whose messages give no payload or nothing new. Each is over where its
// first number is 0.

import { plural } from '../../../std/quantity.ts'
import { quote } from '../../../std/quote.ts'
import type { EventName, EventOf } from '../../../domain/event.ts'
import { noKey } from '../event-text.ts'
import type { EventTable } from '../types.ts'

type PoorEvent = Extract<EventName, `devices_${'not_mapped' | 'repeating'}`>

const overOr = (warn: boolean) => (warn ? 'warn' : 'info')
const isProblem = ({ isMany, named }: EventOf<'devices_not_mapped'>) => isMany || named.length > 0

export const poorEvents: EventTable<PoorEvent> = {
  devices_not_mapped: {
    meaning:
      'Devices send, and their messages give no payload, while those of others do; or it is so no longer.',
    level: { oneOf: ['info', 'warn'], of: (event) => overOr(isProblem(event)) },
    text: (event) =>
      event.devices === 0 ? 'The messages of all devices give payloads.' : devicesText(event),
    repeats: () => 'devices_not_mapped',
    fields: ({ named, ...fields }) => ({ ...fields, named: named.slice(0, 5) }),
    raises: {
      DEVICES_NOT_MAPPED: (event) =>
        event.devices === 0
          ? null
          : {
              what: devicesText(event),
              why: `${event.reasons}.`,
              severity: isProblem(event) ? 'warning' : 'info',
              present: event.devices,
              causes: event.named,
            },
    },
    clears: { DEVICES_NOT_MAPPED: (event) => (event.devices === 0 ? noKey() : undefined) },
  },
  devices_repeating: {
    meaning: 'Devices send the same messages again and again, and nothing new; or they do no longer.',
    level: { oneOf: ['info', 'warn'], of: ({ isMany }) => overOr(isMany) },
    text: (event) =>
      event.devices === 0 ? 'No device repeats its messages any more.' : repeatingText(event),
    repeats: () => 'devices_repeating',
    raises: {
      DEVICES_REPEATING: (event) =>
        event.devices === 0
          ? null
          : {
              what: repeatingText(event),
              why: 'Each of their last messages is a duplicate: its time and values came before.',
              severity: event.isMany ? 'warning' : 'info',
              present: event.devices,
            },
    },
    clears: { DEVICES_REPEATING: (event) => (event.devices === 0 ? noKey() : undefined) },
  },
}

function repeatingText({ devices, sending, example }: { devices: number; sending: number; example: string }) {
  const which = `${devices} of ${plural(sending, 'device')} that send`
  return `The messages of ${which} bring nothing new, such as those of ${quote(example, 80)}.`
}

function devicesText({ devices, sending, example }: { devices: number; sending: number; example: string }) {
  const which = `${devices} of ${plural(sending, 'device')} that send`
  return `The messages of ${which} give no payload, such as those of ${quote(example, 80)}.`
}
