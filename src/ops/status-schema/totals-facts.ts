// totals-facts.ts: the facts that only grow: what happened since the start. Messages, payloads, and what is
// neither, are counted apart.

import { z } from 'zod'
import { keptStoreNames } from '../../domain/kept-store.ts'
import type { MappingView } from '../types.ts'
import { count, fact, group, list, time, word } from './fact.ts'
import { unmappableOf, type Seen } from './seen.ts'

export const totals = group('What happened since `sinceAt`.', (seen: Seen) => seen, {
  since: fact(z.literal('start').describe('The totals begin at the start of the process.'), () => 'start'),
  sinceAt: time(
    'The start of the process, or the last time that the spool was lost: then all begin at 0 again.',
    null,
    (seen) => seen.countedSince,
  ),
  messages: count('Messages received.', 'gateway_messages_received_total', ({ ingest }) => ingest?.received),
  acked: count(
    'Messages acknowledged: their data is on the disk.',
    'gateway_messages_acked_total',
    ({ ingest }) => ingest?.acked,
  ),
  ignored: count(
    'Messages that a rule of the config ignores, or that their client may not publish.',
    null,
    ({ ingest }) => ingest?.ignored,
  ),
  unmappable: count(
    'Messages that became dead letters, because they could not be mapped.',
    null,
    unmappableOf,
  ),
  quarantined: count('Messages put into quarantine.', null, ({ ingest }) => ingest?.quarantined),
  released: count(
    'Messages that left the quarantine.',
    'gateway_messages_released_total',
    ({ mapping }) => mapping && releasedOf(mapping),
  ),
  dropped: count(
    'Messages lost: QoS 0 while nothing could be stored. Alert on any increase.',
    'gateway_messages_dropped_total',
    ({ ingest }) => ingest?.dropped,
  ),
  returned: count(
    'Messages that had to wait and got no acknowledgement. Their devices still have them.',
    null,
    ({ ingest }) => ingest?.returned,
  ),
  resent: count(
    'Messages that were sent again and were stored before: acknowledged, not stored again.',
    null,
    ({ ingest }) => ingest?.resent,
  ),
  resendsStored: count(
    'Messages without a device time that came again with DUP and were stored. Some may be second copies.',
    'gateway_messages_resend_stored_total',
    ({ ingest }) => ingest?.resendsStored,
  ),
  payloads: count(
    'Payloads stored in the spool.',
    'gateway_payloads_appended_total',
    (seen) => seen.totals?.payloads,
  ),
  duplicates: count(
    'Payloads with a payloadId of the dedup window: acknowledged, not stored again.',
    'gateway_payloads_duplicate_total',
    (seen) => seen.totals?.duplicates,
  ),
  delivered: count('Payloads that the service accepted.', null, (seen) => seen.totals?.delivered),
  retried: count(
    'Failed payloads that were put into a retry lane.',
    'gateway_payloads_retried_total',
    (seen) => seen.totals?.retried,
  ),
  dead: count(
    'Payloads that became dead letters, because the service refused them and no retry is left.',
    'gateway_payloads_dead_total',
    ({ delivery }) => delivery?.dead,
  ),
  payloadsReturned: count(
    'Payloads removed from the spool, because they are parked in a queue of the engine.',
    'gateway_payloads_returned_total',
    (seen) => seen.totals?.returned,
  ),
  damaged: count(
    'Payloads that were acknowledged and could not be read from the disk. Alert on any increase.',
    'gateway_payloads_damaged_total',
    (seen) => seen.totals?.damaged,
  ),
  recordsMissing: count(
    'Kept messages, dead letters and entries of the mapping state that were counted and are missing. Alert on any ' +
      'increase.',
    'gateway_records_missing_total',
    (seen) => seen.totals?.recordsMissing,
  ),
  submissions: count('HTTP requests with a batch.', null, ({ delivery }) => delivery?.submissions),
  evicted: list(
    'What full stores deleted.',
    (seen) => keptStoreNames.map((store) => ({ store, messages: seen.totals?.evicted[store] })),
    {
      store: word('The store.', keptStoreNames),
      messages: count(
        'Kept messages or dead letters deleted to make room in a store. Their data is lost. Alert on any increase.',
        'gateway_messages_evicted_total',
      ),
    },
    { store: 'store' },
  ),
})

function releasedOf({ release, decisions, corrected }: MappingView): number {
  return release.released + decisions.released + decisions.dropped + corrected.released
}
