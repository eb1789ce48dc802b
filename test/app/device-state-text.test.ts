import { expect, test } from 'vitest'
import { stateOf } from '../../src/app/device-monitor/device-state-text.ts'
import type { DeviceRecordView, Loss } from '../../src/device-records/device-records.ts'
import { defaultProvider } from '../../src/domain/ids.ts'
import type { ClientView } from '../../src/ingest/ingest.ts'
import { clientView } from '../support/device-records-world.ts'

const hour = 3_600_000
const now = 1_760_000_000_000
const iso = (at: number) => new Date(at).toISOString()

function record(more: Partial<DeviceRecordView> = {}): DeviceRecordView {
  return {
    device: 'truck-1',
    provider: defaultProvider,
    assetId: 'TRK-1',
    messages: 100,
    firstSeen: now - 48 * hour,
    lastSeen: now - 2 * hour,
    lastMappedAt: now - 2 * hour,
    messagesPerHour: 0,
    medianGapMs: 30_000,
    silentAfterMs: 300_000,
    silentSince: now - 2 * hour,
    mutedUntil: null,
    sender: null,
    position: null,
    accepted: null,
    refused: null,
    duplicates: 0,
    repeating: null,
    losses: [],
    withheld: [],
    skewMs: null,
    ...more,
  }
}

const client = (more: Partial<ClientView> = {}) => clientView('truck-1', { since: now - 5 * hour, ...more })
const loss = (at: number, more: Partial<Loss> = {}): Loss => ({
  kind: 'ignored',
  source: 'trucks',
  reason: 'no fix',
  count: 3,
  firstAt: now - 48 * hour,
  lastAt: at,
  ...more,
})
const unnamed = (more: Partial<NonNullable<ClientView['unnamed']>>) => ({
  count: 1,
  firstAt: now - 200,
  at: now - 200,
  topic: 'telemetry/v1/truck-1',
  source: null,
  became: 'dead' as const,
  reason: 'NO_SOURCE',
  detail: 'No source takes the topic.',
  ...more,
})
const wrong = { reason: 'bad_credentials', detail: 'Its password is wrong.', at: now - hour, count: 4 }
const connectedAt = (at: number, user = '') =>
  `The device table has it, and no message of it has come. It connected as client "truck-1",${user} from 10.0.0.7, ` +
  `at ${iso(at)}, ${at === now - hour ? '1 h ago' : 'just now'}.`
const repeating = { messages: 79, from: now - hour, newAt: now - 2 * hour, isOneMessage: true }
const noSource = 'No source takes this topic, so the message became a dead letter (NO_SOURCE). '
const taken = 'Sources take "fleet/{device}/telemetry".'

type Expected = [state: string, since: number | null, why: string | null]
const silent = (why: string): Expected => [
  'silent',
  now - 2 * hour,
  `No message for 2 h, before one every ${why}`,
]

// Seen by a person: clients-without-device.test.ts, and in test/device-records.
test.each<[string, DeviceRecordView | null, ClientView | null, Expected]>([
  ['connected and silent', record(), client(), silent('30 s. It has been connected for 5 h.')],
  [
    'silent since its connection was lost',
    record({ medianGapMs: 0 }),
    client({ state: 'lost', since: now - 2 * hour, willCame: true }),
    silent('second. Its connection was lost 2 h ago (will).'),
  ],
  [
    'silent, and its last message gave nothing',
    record({ lastMappedAt: now - 48 * hour, losses: [loss(now - 2 * hour)] }),
    null,
    silent('30 s. It is not connected. Its last message was ignored: no fix (3 times).'),
  ],
  [
    'refused after its last message',
    record(),
    client({ state: 'lost', refusedAt: now - hour, fault: wrong }),
    ['refused', now - hour, 'It was refused from 10.0.0.7, the last time 1 h ago. Its password is wrong.'],
  ],
  [
    'refused before its last message, and sending since',
    record({ silentSince: null }),
    client({ refusedAt: now - 3 * hour, fault: wrong }),
    ['sending', now - 48 * hour, null],
  ],
  [
    'repeating its last message',
    record({ silentSince: null, repeating }),
    client(),
    [
      'repeating',
      now - 2 * hour,
      `It repeats its last message (79 times). The last new one came at ${iso(now - 2 * hour)}, 2 h ago.`,
    ],
  ],
  [
    'sending without a fix for two days',
    record({ silentSince: null, lastMappedAt: now - 48 * hour, losses: [loss(now - 2 * hour)] }),
    client(),
    ['not_mapped', now - 48 * hour, 'Its last message was ignored: no fix (3 times).'],
  ],
  [
    'mapped again after a dead letter',
    record({ silentSince: null, losses: [loss(now - 3 * hour, { kind: 'dead', reason: 'NOT_JSON' })] }),
    client(),
    ['sending', now - 48 * hour, null],
  ],
  [
    'listed, and never heard of',
    null,
    null,
    ['never_sent', null, 'The device table has it, and no message of it has come. It is not connected.'],
  ],
  [
    'listed and connected, and only subscribing',
    null,
    client({ since: now - hour, userName: 'depot', traffic: { messages: 0, subscriptions: 2 } }),
    [
      'never_sent',
      null,
      `${connectedAt(now - hour, ' user "depot",')} It sent no message, and subscribed to 2 topic filters. ` +
        'The gateway publishes nothing there.',
    ],
  ],
  [
    'listed and gone, after messages that a source took and that name no device',
    null,
    client({
      state: 'disconnected',
      since: now - hour,
      unnamed: unnamed({
        count: 40,
        source: 'trucks',
        reason: 'NO_DEVICE',
        detail: 'The message has no id.',
      }),
    }),
    [
      'not_mapped',
      now - 200,
      'The device table has it, and no message of it has come. It disconnected 1 h ago: client "truck-1", from ' +
        '10.0.0.7. It sent 40 messages that name no device, the last one on "telemetry/v1/truck-1" just now. ' +
        'The message of source "trucks" became a dead letter: NO_DEVICE: The message has no id.',
    ],
  ],
  [
    'silent, while its client sends on a topic that no source takes',
    record(),
    client({ unnamed: unnamed({ count: 2 }) }),
    silent(
      '30 s. It has been connected for 5 h. It sent 2 messages that name no device, the last one on ' +
        `"telemetry/v1/truck-1" just now. ${noSource}${taken}`,
    ),
  ],
])('the state of a device, since when, and why: %s', (_what, known, from, [state, since, why]) => {
  const topics = ['fleet/{device}/telemetry']
  const expected = { state, since: since === null ? null : iso(since), why }
  expect(stateOf({ record: known, client: from, topics, now })).toEqual(expected)
})
