// client-events.ts: the events of listeners, of clients and their connections, of access and of sessions.
//
// Client ids come from outside and cost nothing to invent. A line that has its client as its key therefore
// has the address as its group, which bounds the lines (logging/repeated-lines.ts).

import { formatDuration, plural } from '../../../std/quantity.ts'
import { bounded, quote } from '../../../std/quote.ts'
import type { Cause } from '../../cause.ts'
import { address, clientId, count, detail, event, field, identity, reason, topic } from '../events.ts'
import { fromText, sentence } from '../event-text.ts'

export const clientEvents = {
  listener_opened: event({
    fields: { url: field<string>('address of the listener') },
    meaning: 'Devices can connect to this address.',
    level: 'info',
    text: ({ url }) => `Listening for devices on ${url}.`,
  }),
  listener_refused: event({
    fields: {
      reason,
      detail,
      found: field<string | null>('of the last request for a WebSocket: its path, Origin or subprotocols'),
      count: count('connections since the last such event'),
      top: field<readonly string[]>('addresses or identities with the most of them, and their number'),
    },
    meaning:
      'Connections were closed before their CONNECT was accepted, because of a limit, of the PROXY protocol, or of a ' +
      'request for a WebSocket.',
    level: 'warn',
    text: ({ count, detail, found, top }) =>
      `Closed ${plural(count, 'connection')} without an accepted CONNECT. ${sentence(detail)} ${foundOf(found)}${topOf(top)}`,
    repeats: ({ reason }) => reason,
    raises: {
      CONNECTIONS_LIMITED: (event) => refusedFor('max_', event),
      PROXY_HEADER_WRONG: (event) => refusedFor('proxy_', event),
      WEBSOCKET_REFUSED: (event) =>
        refusedFor('websocket_', event) ?? refusedFor('http_', event) ?? refusedFor('not_http', event),
    },
  }),
  client_paused: event({
    fields: {
      reason,
      detail,
      count: count('pauses since the last such event'),
      top: field<readonly string[]>('identities or client ids with the most of them, and their number'),
    },
    meaning:
      'Clients sent more than their rate, or messages that take long to map, and were not read for a while. Nothing ' +
      'was dropped.',
    level: 'warn',
    text: (event) => `${pausedClients(event, event.count)} ${topOf(event.top)}`,
    repeats: ({ reason }) => reason,
    raises: {
      CLIENTS_PAUSED: (event) => ({
        key: event.reason,
        times: event.count,
        what: (times) => pausedClients(event, times),
        why: `Of the last ${plural(event.count, 'pause')}: ${topOf(event.top)}`,
      }),
    },
  }),
  client_connected: event({
    fields: { clientId, identity, address },
    meaning: 'A client connected. One line for each connection.',
    level: 'debug',
    text: (event) => `Connected: ${clientOf(event)}, from ${event.address ?? 'an unknown address'}.`,
  }),
  client_disconnected: event({
    fields: {
      reason,
      detail,
      clientId,
      identity,
      address,
      connectedMs: field<number>('how long it was connected, in ms'),
    },
    meaning: 'The connection of a client ended. One line for each connection.',
    level: 'debug',
    text: (event) =>
      `Disconnected: ${clientOf(event)}, after ${formatDuration(event.connectedMs)}. ${bounded(sentence(event.detail))}`,
  }),
  client_refused: event({
    fields: { reason, detail, clientId, identity, address },
    meaning:
      'The gateway refused a connection. At most ten clients of an address have a line each in a minute.',
    act: 'Look up the reason. If the client is one of yours, correct its settings or its password.',
    level: 'info',
    text: (event) => `Refused ${clientOf(event)}. ${bounded(sentence(event.detail))}`,
    repeats: (event) => `${clientKey(event)}|${event.reason}`,
    group: addressOf,
  }),
  client_dropped: event({
    fields: { reason, detail, clientId, identity, address },
    meaning:
      'The gateway closed a connection. At most ten clients of an address have a line each in a minute.',
    act: 'Look up the reason. If this repeats, check the device.',
    level: 'warn',
    text: (event) => `Closed the connection of ${clientOf(event)}. ${bounded(sentence(event.detail))}`,
    repeats: (event) => `${clientKey(event)}|${event.reason}`,
    group: addressOf,
    raises: {
      CONTROL_PACKETS_LIMITED: (event) => droppedFor('too_many_control_packets', event),
      PARTIAL_PACKETS_FULL: (event) => droppedFor('partial_packets_full', event),
    },
  }),
  auth_failures: event({
    fields: {
      count: count('refused passwords, tokens and users since the last such event'),
      addresses: field<readonly string[]>('addresses with most, and how many since the first failure'),
      users: field<readonly string[]>('users with most; those that are not configured are not named'),
    },
    level: 'warn',
    raises: {
      AUTH_FAILURES: ({ count, addresses, users }) => ({
        times: count,
        what: (times) => `${plural(times, 'connection')} refused because of a wrong password, token or user.`,
        why: `Most come from ${namesOf(addresses)}, and for ${namesOf(users)}.`,
      }),
    },
  }),
  clients_refused: event({
    fields: {
      reason: field<string>('stable code of the reason'),
      detail: field<string>('the reason in words'),
      act: field<string | null>('what to do; null where the reason says it'),
      count: count('refused connections since the last such event'),
      clients: count('clients that were refused; those without a client id by their address'),
      known: count('clients that were admitted once'),
      knownRefused: count('of the known clients, those that are refused and not connected'),
      wholeFleet: field<boolean>(
        'half of the known clients or more; of a gateway that knows none, two or more',
      ),
      clientId: field<string | null>('MQTT client id of the last one; null where it is not known'),
      userName: field<string | null>('its MQTT user name; null where it gave none'),
      address: field<string | null>('its address; null where it is not known'),
    },
    level: { oneOf: ['warn', 'error'], of: ({ wholeFleet }) => (wholeFleet ? 'error' : 'warn') },
    repeats: ({ reason }) => reason,
    raises: {
      CLIENTS_REFUSED: ({
        reason,
        detail,
        act,
        count,
        clients,
        known,
        knownRefused,
        wholeFleet,
        ...from
      }) => ({
        key: reason,
        times: count,
        what: (times) =>
          `${plural(times, 'connection')} of ${plural(clients, 'client')} refused: ` +
          (known === 0
            ? 'no client was ever admitted.'
            : `${knownRefused} of ${plural(known, 'known client')}.`),
        why: `${sentence(detail)} The example is a connection${fromText(from)}.`,
        ...(act !== null && { act }),
        severity: wholeFleet ? 'error' : 'warning',
      }),
    },
  }),
  client_taken_over: event({
    fields: { clientId, identity, address },
    meaning:
      'A client connected while its earlier connection was open. The earlier one was closed. At most ten clients of ' +
      'an address have a line each in a minute.',
    level: 'info',
    text: ({ clientId }) =>
      `Closed the earlier connection of ${client(clientId)}, because it connected again.`,
    repeats: clientKey,
    group: addressOf,
  }),
  client_id_shared: event({
    fields: { clientId, identity, address, takeOvers: count('take-overs since they began') },
    level: 'warn',
    repeats: () => '',
    raises: {
      CLIENT_ID_SHARED: ({ clientId, identity, address, takeOvers }) => ({
        why:
          `The last one: ${clientOf({ clientId, identity })} took over from itself ` +
          `${plural(takeOvers, 'time')}, with less than ten minutes in between, the last time from ${address ?? 'an unknown address'}.`,
      }),
    },
  }),
  publish_refused: event({
    fields: { reason, detail, clientId, identity, address, topic },
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
  }),
  session_evicted: event({
    fields: {
      clientId,
      owner: field<string | null>('identity or address that used it last; null where that is not known'),
      reason: field<'max_sessions' | 'max_unreleased_messages_total'>('limit that was reached'),
    },
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
  }),
}

type Refused = { reason: string; count: number; detail: string; found: string | null; top: readonly string[] }

function refusedFor(prefix: string, { reason, count, detail, found, top }: Refused): Cause | null {
  if (!reason.startsWith(prefix)) return null
  return {
    key: reason,
    times: count,
    what: (times) => `Closed ${plural(times, 'connection')} without an accepted CONNECT. ${sentence(detail)}`,
    why: foundOf(found) + topOf(top),
  }
}

/** It comes from outside. */
function foundOf(found: string | null): string {
  return found === null ? '' : `The last one had ${quote(found)}. `
}

function pausedClients({ detail }: { detail: string }, count: number): string {
  return `Paused the reading of a client ${plural(count, 'time')}. ${sentence(detail)}`
}

type Dropped = Whose & { reason: string; detail: string; identity: string | null }

function droppedFor(cause: string, event: Dropped): Cause | null {
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

function evicted({ clientId, owner }: { clientId: string | null; owner: string | null }): string {
  return client(clientId) + (owner === null ? '' : `, last used by ${quote(owner, 64)}`)
}

function clientOf({ clientId, identity }: { clientId: string | null; identity: string | null }): string {
  return client(clientId) + (identity === null ? '' : ` (identity ${quote(identity, 64)})`)
}

type Whose = { clientId: string | null; address: string | null }

function addressOf({ address }: Whose): string {
  return address ?? ''
}

/** Its length is bounded: the client id comes from outside. */
function clientKey({ clientId, address }: Whose): string {
  return `${address ?? ''}|${(clientId ?? '').slice(0, 64)}`
}

function client(clientId: string | null): string {
  return clientId === null ? 'a client' : `client ${quote(clientId, 64)}`
}
