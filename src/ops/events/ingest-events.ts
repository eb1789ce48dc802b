// ingest-events.ts: the events of incoming messages, and the quarantine.

import { formatSize, plural } from '../../std/quantity.ts'
import { bounded, quote } from '../../std/quote.ts'
import type { EventName, EventOf } from '../../domain/event.ts'
import { keptStores } from '../../domain/kept-store.ts'
import { fromText, sentence } from './event-text.ts'
import type { EventTable } from './types.ts'

type IngestEvent = Exclude<
  Extract<EventName, `${'message' | 'messages' | 'quarantine'}_${string}`>,
  `message_source_${string}`
>

export const ingestEvents: EventTable<IngestEvent> = {
  messages_dropped: {
    level: 'error',
    repeats: ({ reason }) => reason,
    raises: {
      MESSAGES_DROPPED: ({ count, detail }) => ({
        times: count,
        what: (dropped) => `Dropped ${plural(dropped, 'QoS 0 message')}. The data is lost.`,
        why: sentence(detail),
      }),
    },
  },
  messages_evicted: {
    level: 'error',
    raises: {
      MESSAGES_EVICTED: ({ store, messages, bytes, shares }) => ({
        key: store,
        times: messages,
        what: (count) => `Dropped ${plural(count, 'message')}: ${keptStores[store]}. The data is lost.`,
        why: `Their limit is reached; ${formatSize(bytes)} made room just now. Largest shares: ${bounded(shares, 300)}.`,
      }),
    },
    repeats: ({ store }) => store,
  },
  message_unmappable: {
    meaning: 'A message cannot be mapped. It is a dead letter now.',
    act: 'See DEAD_LETTERS.',
    level: 'warn',
    text: (event) => `${messageOf(event)} became a dead letter: ${event.reason}.`,
    repeats: ({ source, reason }) => `${source ?? ''}|${reason}`,
  },
  message_quarantined: {
    meaning:
      'A message is kept in quarantine, because its device is not listed or its time is not plausible.',
    act: 'Run `quarantine list`. Add the device to the device table, or release or drop its messages.',
    level: 'warn',
    text: (event) => `${messageOf(event)} is kept in quarantine: ${event.reason}.`,
    repeats: ({ source, reason }) => `${source}|${reason}`,
  },
  quarantine_released: {
    meaning: 'Messages left the quarantine, because their devices are listed now.',
    level: 'info',
    text: ({ messages, devices, payloads, dead }) =>
      `Released ${plural(messages, 'message')} of ${plural(devices, 'device')} from quarantine: ` +
      `${plural(payloads, 'payload')}, ${plural(dead, 'dead letter')}.`,
  },
  quarantine_decided: {
    meaning: 'A command released or dropped messages in quarantine.',
    act: 'Nothing. Dropped messages are dead letters. To undo the drop, run `dead-letters remap`.',
    level: { oneOf: ['info', 'warn'], of: ({ decision }) => (decision === 'drop' ? 'warn' : 'info') },
    text: ({ decision, device, messages, payloads, dead }) => {
      const what = plural(messages, 'message') + (device === null ? '' : ` of device ${quote(device, 80)}`)
      if (decision === 'drop')
        return `Dropped ${what} from quarantine by a command. They are dead letters now.`
      const how = decision === 'restamp' ? ', with the arrival time in place of the wrong times' : ''
      return (
        `Released ${what} from quarantine by a command${how}: ` +
        `${plural(payloads, 'payload')}, ${plural(dead, 'dead letter')}.`
      )
    },
  },
}

function messageOf({ topic, ...from }: EventOf<'message_unmappable' | 'message_quarantined'>): string {
  return `A message on ${quote(topic, 100)}${fromText(from)}`
}
