// ingest-event.ts: the events of refused clients, of message sources, and of what
// devices send: models that are not known, and values that cannot be.

import { count, device, field, source } from './event-fields.ts'

const messageSource = field<string>('name of the message source')
const clientId = field<string>('MQTT client id of the connection')

export const listenerEventFields = {
  clients_refused: {
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
} as const

export const ingestEventFields = {
  message_source_connected: {
    messageSource,
    clientId,
    url: field<string>('address of the server'),
    sessionPresent: field<boolean | null>('the server had kept the session; null where it has none'),
    removedFilters: field<readonly string[]>('filters of the session that the config does not have any more'),
  },
  message_source_lost: {
    messageSource,
    clientId,
    reason: field<string>('stable code of the reason'),
    detail: field<string>('the reason in words'),
    act: field<string>('what to do'),
    retryInMs: field<number>('time until the next try, in ms'),
  },
  message_source_limited: {
    messageSource,
    limit: field<'bindings_unseen' | 'no_stored_time'>(
      '`bindings_unseen`: whether messages come to the queues cannot be seen, `no_stored_time`: the time at which the ' +
        'engine got a message is not known',
    ),
    detail: field<string>('what is not known, in words'),
    act: field<string>('what a person can do'),
  },
  message_source_released: {
    messageSource,
    clientId,
    session: field<'kept' | 'engine' | 'left_group' | 'left_with_rest' | 'none'>(
      '`kept`: it queues what arrives, `engine`: RabbitMQ or NATS keeps it for any gateway, `left_group`: the other members get it, `left_with_rest`: so, too, and the ' +
        'session keeps what it had before, `none`: nothing is queued',
    ),
  },

  custody_entries_refused: {
    entries: count('entries that became dead letters'),
    reason: field<'BAD_PARKED_ENTRY' | 'PROVIDER_NOT_IN_CONFIG'>('reason of these dead letters'),
    why: field<string>('what is wrong with the last one, in words'),
  },
  custody_copies_cut: { copies: count('copies without the bytes of their message') },

  rebirth_requested: { messageSource, topic: field<string>('topic of the command') },

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
} as const
