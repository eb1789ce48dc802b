// ingest-events.ts: the events of listeners, incoming messages, the quarantine and expressions.

import { formatDuration, formatSize, plural } from '../../std/quantity.ts'
import { bounded, quote } from '../../std/quote.ts'
import type { EventName, EventOf } from '../../domain/event.ts'
import { keptStores } from '../../domain/kept-store.ts'
import type { Cause } from '../conditions/conditions.ts'
import { countedConditions } from '../conditions/counted-conditions.ts'
import { noKey, ofFault, sentence } from './event-text.ts'
import type { EventTable } from './types.ts'

type IngestEvent = Extract<
  EventName,
  `${'auth' | 'access' | 'listener' | 'client' | 'publish' | 'session' | 'message' | 'messages' | 'quarantine' | 'expressions'}_${string}`
>

export const ingestEvents: EventTable<IngestEvent> = {
  listener_opened: {
    meaning: 'Devices can connect to this address.',
    level: 'info',
    text: ({ url }) => `Listening for devices on ${url}.`,
    clears: { LISTENER_FAILED: noKey },
  },
  listener_failed: {
    level: 'error',
    repeats: ({ fault }) => fault.code,
    raises: { LISTENER_FAILED: ofFault },
  },
  listener_refused: {
    meaning:
      'Connections were closed before their CONNECT was accepted, because of a limit or of the PROXY protocol.',
    level: 'warn',
    text: ({ count, detail, top }) =>
      `Closed ${plural(count, 'connection')} without an accepted CONNECT. ${sentence(detail)} ${topOf(top)}`,
    repeats: ({ reason }) => reason,
    raises: {
      CONNECTIONS_LIMITED: (event) =>
        event.reason.startsWith('proxy_') ? null : { ...refusedConnections(event), key: event.reason },
      PROXY_HEADER_WRONG: (event) =>
        event.reason.startsWith('proxy_') ? { ...refusedConnections(event), key: event.reason } : null,
    },
  },
  client_paused: {
    meaning: 'Clients sent more than their rate and were not read for a while. Nothing was dropped.',
    level: 'warn',
    text: (event) => `${pausedClients(event, event.count)} ${topOf(event.top)}`,
    repeats: ({ reason }) => reason,
    raises: {
      CLIENTS_PAUSED: (event) => ({
        key: event.reason,
        times: event.count,
        what: (times) => pausedClients(event, times),
        why: topOf(event.top),
      }),
    },
  },
  client_refused: {
    meaning: 'The gateway refused a connection.',
    act: 'Look up the reason. If the client is one of yours, correct its settings or its password.',
    level: 'warn',
    text: (event) => `Refused ${clientOf(event)}. ${bounded(sentence(event.detail))}`,
    // Without the client: a scanner with random ids would get a line for each connection.
    repeats: ({ reason }) => reason,
  },
  client_dropped: {
    meaning: 'The gateway closed a connection.',
    act: 'Look up the reason. If this repeats, check the device.',
    level: 'warn',
    text: (event) => `Closed the connection of ${clientOf(event)}. ${bounded(sentence(event.detail))}`,
    repeats: ({ reason }) => reason,
    raises: {
      CONTROL_PACKETS_LIMITED: (event) => droppedFor('too_many_control_packets', event),
      PARTIAL_PACKETS_FULL: (event) => droppedFor('partial_packets_full', event),
    },
  },
  access_renewed: {
    meaning: 'Users, tokens and certificates were read again. They are in force; open connections stay.',
    level: 'debug',
    text: () => 'Users, tokens and certificates were read again.',
    clears: { ACCESS_STALE: noKey },
  },
  access_refused: {
    level: 'error',
    repeats: ({ fault }) => fault.code,
    raises: {
      ACCESS_STALE: ({ fault: { what, why, act } }) => ({
        what: `${what} The former ones stay in force.`,
        why,
        act: `${act} The gateway reads the files again as soon as they change.`,
      }),
    },
  },
  auth_failures: {
    level: 'warn',
    fields: ({ count, addresses, users }) => ({ count, addresses, users }),
    raises: {
      AUTH_FAILURES: ({ count, addresses, users }) => ({
        times: count,
        what: (times) => `${plural(times, 'connection')} refused because of a wrong password, token or user.`,
        why: `Most come from ${namesOf(addresses)}, and for ${namesOf(users)}.`,
      }),
    },
  },
  client_taken_over: {
    meaning: 'A client connected while its earlier connection was open. The earlier one was closed.',
    level: 'info',
    text: ({ clientId }) =>
      `Closed the earlier connection of ${client(clientId)}, because it connected again.`,
    repeats: () => '',
  },
  client_id_shared: {
    level: 'warn',
    repeats: () => '',
    raises: {
      CLIENT_ID_SHARED: ({ clientId, identity, address, takeOvers }) => ({
        why:
          `The last one: ${clientOf({ clientId, identity })} took over from itself ` +
          `${plural(takeOvers, 'time')} within ten minutes, the last time from ${address ?? 'an unknown address'}.`,
      }),
    },
  },
  publish_refused: {
    level: 'warn',
    text: ({ clientId, detail }) => `Refused messages of ${client(clientId)}. ${sentence(detail)}`,
    repeats: ({ reason, identity }) => `${reason}|${identity ?? ''}`,
    raises: {
      PUBLISH_REFUSED: ({ clientId, identity, address, detail }) => ({
        why:
          `The last one: ${client(clientId)} (${identity === null ? 'anonymous' : `identity ${quote(identity, 64)}`}, ` +
          `${address ?? 'unknown address'}). ${sentence(detail)}`,
      }),
    },
  },
  session_evicted: {
    meaning: 'A stored session was removed, because a limit of stored sessions is reached.',
    level: 'warn',
    text: (event) => `Removed the stored session of ${evicted(event)}.`,
    repeats: ({ reason }) => reason,
    raises: {
      SESSIONS_LIMITED: (event) => ({
        key: event.reason,
        what: (count) => `Removed ${plural(count, 'stored session')}: ${event.reason} is reached.`,
        why: `Latest: that of ${evicted(event)}.`,
      }),
    },
  },
  messages_dropped: {
    level: 'error',
    repeats: ({ reason }) => reason,
    raises: {
      MESSAGES_DROPPED: ({ count, detail }) => ({
        times: count,
        what: countedConditions.MESSAGES_DROPPED.what,
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
    level: 'warn',
    text: ({ topic, reason }) => `A message on ${quote(topic, 100)} became a dead letter: ${reason}.`,
    repeats: ({ source, reason }) => `${source ?? ''}|${reason}`,
    raises: {
      DEAD_LETTERS: ({ topic, reason, detail }) => ({
        what: countedConditions.DEAD_LETTERS.what,
        why: `Latest: ${reason} on topic ${quote(topic, 100)}: ${quote(detail)}`,
      }),
    },
  },
  message_quarantined: {
    meaning:
      'A message is kept in quarantine, because its device is not listed or its time is not plausible.',
    act: 'Run `quarantine list`. Add the device to the device table, or release or drop its messages.',
    level: 'warn',
    text: ({ topic, reason }) => `A message on ${quote(topic, 100)} is kept in quarantine: ${reason}.`,
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
  expressions_failed: {
    level: 'error',
    repeats: () => '',
    raises: {
      EXPRESSIONS_STALLED: ({ why }) => ({
        why: `The thread that evaluates them cannot be started: ${why}.`,
      }),
    },
  },
  expressions_switched_off: {
    level: 'error',
    repeats: ({ source }) => source,
    raises: {
      EXPRESSION_OFF: ({ source, timeouts, retryInMs }) => ({
        key: source,
        what: `The expression of source ${quote(source, 64)} is switched off. Its messages wait.`,
        why:
          `It took too long, or too much memory, for ${plural(timeouts, 'message')} in a row. ` +
          `It is tried again in ${formatDuration(retryInMs)}.`,
      }),
    },
  },
  expressions_switched_on: {
    meaning: 'The expression of a source is in use again.',
    level: 'info',
    text: ({ source }) => `The expression of source ${quote(source, 64)} is in use again.`,
    repeats: ({ source }) => source,
    clears: { EXPRESSION_OFF: ({ source }) => source },
  },
  expressions_resumed: {
    meaning: 'JSONata expressions are evaluated again.',
    level: 'info',
    text: () => 'JSONata expressions are evaluated again.',
    repeats: () => '',
    clears: { EXPRESSIONS_STALLED: noKey },
  },
}

function refusedConnections({ count, detail, top }: EventOf<'listener_refused'>): Cause {
  return {
    times: count,
    what: (times) => `Closed ${plural(times, 'connection')} without an accepted CONNECT. ${sentence(detail)}`,
    why: topOf(top),
  }
}

function pausedClients({ detail }: EventOf<'client_paused'>, count: number): string {
  return `Paused the reading of a client ${plural(count, 'time')}. ${sentence(detail)}`
}

function droppedFor(cause: string, event: EventOf<'client_dropped'>): Cause | null {
  if (event.reason !== cause) return null
  const { detail, address } = event
  return {
    what: (times) => `Closed ${plural(times, 'connection')}. ${bounded(sentence(detail))}`,
    why: `The latest was that of ${clientOf(event)}, address ${quote(address ?? 'unknown', 64)}.`,
  }
}

function topOf(top: readonly string[]): string {
  return `Most are of ${top.map((each) => quote(each, 80)).join(', ')}.`
}

function namesOf(names: readonly string[]): string {
  return names.map((name) => quote(name, 80)).join(', ')
}

function evicted({ clientId, owner }: EventOf<'session_evicted'>): string {
  return client(clientId) + (owner === null ? '' : `, last used by ${quote(owner, 64)}`)
}

function clientOf({ clientId, identity }: { clientId: string | null; identity: string | null }): string {
  return client(clientId) + (identity === null ? '' : ` (identity ${quote(identity, 64)})`)
}

function client(clientId: string | null): string {
  return clientId === null ? 'a client' : `client ${quote(clientId, 64)}`
}
