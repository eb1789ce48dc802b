// event.ts: what happened, as facts: every event in one table. The stages emit events; ops makes a log line,
// numbers and conditions of them. No event is emitted per message: the owners count those.
//
// An event is one entry in a file of events/: its fields, how serious it is, how it reads in the log, what to
// do, and which conditions it raises. The type GatewayEvent and the documentation are derived from the
// entries. To add one, write it, and run `npm run docs`. Stages import the types only.
//
//   events/   client-events (message-source-events, custody-events), spool-events, spool-loss-events,
//             dead-letter-events, ingest-events, mapping-events, clock-events, delivery-events,
//             ledger-events, gateway-events, alert-events
//
// Rules: what loses data is never below `error`, and what succeeds for each batch is `debug`. A text is built
// only when its line is written; an event costs two lookups otherwise.

import { alertEvents } from './events/alert-events.ts'
import { clientEvents } from './events/client-events/client-events.ts'
import { custodyEvents } from './events/client-events/custody-events.ts'
import { messageSourceEvents } from './events/client-events/message-source-events.ts'
import { clockEvents } from './events/clock-events.ts'
import { deadLetterEvents } from './events/dead-letter-events.ts'
import { deliveryEvents } from './events/delivery-events.ts'
import type { EventSpec, Fields, ValuesOf } from './events/events.ts'
import { conditionEvents, gatewayEvents, httpEvents, operatorEvents } from './events/gateway-events.ts'
import { ingestEvents } from './events/ingest-events.ts'
import { ledgerEvents } from './events/ledger-events.ts'
import { mappingEvents } from './events/mapping-events.ts'
import { spoolEvents } from './events/spool-events.ts'
import { spoolLossEvents } from './events/spool-loss-events.ts'

export type { DropReason } from './events/ingest-events.ts'
export type { HoldReason } from './events/spool-events.ts'

const entries = {
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

export type EventName = keyof typeof entries

/** The event of a name: `kind` and its fields. */
export type EventOf<Name extends EventName> = {
  [Each in Name]: { kind: Each } & ValuesOf<(typeof entries)[Each]['fields']>
}[Name]

export type GatewayEvent = EventOf<EventName>

export type Emit = (event: GatewayEvent) => void

type Entry<Event> = { fields: Fields } & EventSpec<Event>

export const eventTable: { [Each in EventName]: Entry<EventOf<Each>> } = entries

/** The entry of an event. Throws for an event that the table does not have. */
export function eventSpec<Name extends EventName>({ kind }: { kind: Name }): Entry<EventOf<Name>> {
  if (!Object.hasOwn(eventTable, kind)) throw new Error(`The table has no event ${kind}.`)
  return eventTable[kind]
}
