// ingest-events.ts: the events of incoming messages, and the quarantine.

import { formatSize, plural } from '../../std/quantity.ts'
import { bounded, quote } from '../../std/quote.ts'
import { keptStores, type FilledStore, type KeptStore } from '../kept-store.ts'
import {
  address,
  clientId,
  userName,
  bytes,
  count,
  dead,
  detail,
  device,
  devices,
  event,
  field,
  messages,
  payloads,
  reason,
  source,
  topic,
} from './events.ts'
import type { HoldReason } from './spool-events.ts'
import { fromText, sentence } from './event-text.ts'

/** Why a QoS 0 message could not be kept. */
export type DropReason = HoldReason | 'waiting_full' | `${FilledStore}_full`

const from = { clientId, userName, address }

export const ingestEvents = {
  messages_dropped: event({
    fields: { reason: field<DropReason>(reason.meaning), detail, count: messages },
    level: 'error',
    repeats: ({ reason }) => reason,
    raises: {
      MESSAGES_DROPPED: ({ count, detail }) => ({
        times: count,
        what: (dropped) => `Dropped ${plural(dropped, 'QoS 0 message')}. The data is lost.`,
        why: sentence(detail),
      }),
    },
  }),
  messages_evicted: event({
    fields: {
      store: field<KeptStore>('name of the store'),
      messages: count('messages'),
      bytes,
      shares: field<string>('the largest shares of the store'),
    },
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
  }),
  message_unmappable: event({
    fields: { source: field<string | null>(source.meaning), topic, reason, detail, ...from },
    meaning: 'A message cannot be mapped. It is a dead letter now.',
    act: 'See DEAD_LETTERS.',
    level: 'warn',
    text: (event) => `${messageOf(event)} became a dead letter: ${event.reason}.`,
    repeats: ({ source, reason }) => `${source ?? ''}|${reason}`,
  }),
  message_quarantined: event({
    fields: { source, device, topic, reason, detail, ...from },
    meaning:
      'A message is kept in quarantine, because its device is not listed or its time is not plausible.',
    act: 'Run `quarantine list`. Add the device to the device table, or release or drop its messages.',
    level: 'warn',
    text: (event) => `${messageOf(event)} is kept in quarantine: ${event.reason}.`,
    repeats: ({ source, reason }) => `${source}|${reason}`,
  }),
  quarantine_released: event({
    fields: { devices, messages, payloads, dead },
    meaning: 'Messages left the quarantine, because their devices are listed now.',
    level: 'info',
    text: ({ messages, devices, payloads, dead }) =>
      `Released ${plural(messages, 'message')} of ${plural(devices, 'device')} from quarantine: ` +
      `${plural(payloads, 'payload')}, ${plural(dead, 'dead letter')}.`,
  }),
  quarantine_decided: event({
    fields: {
      decision: field<'release' | 'restamp' | 'drop'>('what was decided'),
      device: field<string | null>('key of the device; null for several'),
      messages,
      payloads,
      dead,
    },
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
  }),
}

function messageOf({ topic, ...from }: { topic: string } & Parameters<typeof fromText>[0]): string {
  return `A message on ${quote(topic, 100)}${fromText(from)}`
}
