// events.ts: every event in one table: how it reads in the log, how serious it is, and which conditions it
// raises. To add an event: one line in domain/event.ts (name and fields), one entry in a file of
// this folder, and `npm run docs`. The types refuse an event without an entry, and an entry for a condition
// that does not exist.
//
//   client-events (message-source-events, custody-events), spool-events, spool-loss-events,
//   dead-letter-events, ingest-events, mapping-events, clock-events, delivery-events,
//   ledger-events, gateway-events, alert-events: the entries, by area
//   ../conditions/         the codes of the conditions, their severity and what to do
//   ../logging/            the log lines
//
// Rules: what loses data is never below `error`, and what succeeds for each batch is `debug`. A text is built
// only when its line is written; an event costs two lookups otherwise.

import type { EventName, EventOf, GatewayEvent } from '../../domain/event.ts'
import { specOf, type ConditionCode } from '../conditions/condition-catalogue.ts'
import { alertEvents } from './alert-events.ts'
import { clientEvents } from './client-events/client-events.ts'
import { clockEvents } from './clock-events.ts'
import { custodyEvents } from './client-events/custody-events.ts'
import { deadLetterEvents } from './dead-letter-events.ts'
import { deliveryEvents } from './delivery-events.ts'
import { conditionEvents, gatewayEvents, httpEvents, operatorEvents } from './gateway-events.ts'
import { ingestEvents } from './ingest-events.ts'
import { ledgerEvents } from './ledger-events.ts'
import { mappingEvents } from './mapping-events.ts'
import { messageSourceEvents } from './client-events/message-source-events.ts'
import { spoolEvents } from './spool-events.ts'
import { spoolLossEvents } from './spool-loss-events.ts'
import type { EventSpec, EventTable } from './types.ts'

export const eventTable: EventTable<EventName> = {
  ...gatewayEvents,
  ...clientEvents,
  ...ingestEvents,
  ...messageSourceEvents,
  ...custodyEvents,
  ...mappingEvents,
  ...clockEvents,
  ...spoolEvents,
  ...spoolLossEvents,
  ...deliveryEvents,
  ...deadLetterEvents,
  ...ledgerEvents,
  ...operatorEvents,
  ...conditionEvents,
  ...httpEvents,
  ...alertEvents,
}

/** The entry of an event. Throws for an event that the table does not have. */
export function eventSpec<Name extends EventName>({ kind }: { kind: Name }): EventSpec<EventOf<Name>> {
  if (!Object.hasOwn(eventTable, kind)) throw new Error(`The table has no event ${kind}.`)
  return eventTable[kind]
}

/** The log sentence: its own one, or what it says of the condition that it raises. */
export function eventText(event: GatewayEvent): string {
  const { text, raises } = eventSpec(event)
  if (text) return text(event)
  for (const code in raises) {
    const { what, times = 1 } = raises[code as ConditionCode]?.(event) ?? {}
    if (what !== undefined) return typeof what === 'string' ? what : what(times)
  }
  return eventMeaning(event.kind)
}

/** For the documentation; that of its condition where the event says nothing else. */
export function eventMeaning(name: EventName): string {
  const { meaning, raises } = eventTable[name]
  return (
    meaning ??
    Object.keys(raises ?? {})
      .map((code) => specOf(code as ConditionCode).meaning)
      .join(' ')
  )
}
