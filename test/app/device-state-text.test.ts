import { expect, test } from 'vitest'
import { zonedTime } from '../../src/std/clock.ts'
import { stateOf } from '../../src/app/device-monitor/device-state-text.ts'
import type { DeviceRecordView, Loss } from '../../src/device-records/device-records.ts'
import { defaultProvider } from '../../src/domain/ids.ts'
import type { ClientView } from '../../src/ingest/ingest.ts'
import { clientView } from '../support/device-records-world.ts'
import { timedCases } from '../support/timed-cases.ts'

const hour = 3_600_000
const now = 1_760_000_000_000

type Given = Partial<DeviceRecordView> & { isLost?: boolean }

function recordOf({ isLost = false, ...more }: Given): DeviceRecordView {
  const loss: Loss = {
    kind: 'ignored',
    source: 'trucks',
    reason: 'no fix',
    count: 3,
    firstAt: now - 48 * hour,
    lastAt: now - 2 * hour,
  }
  return {
    device: 'truck-1',
    provider: defaultProvider,
    assetId: 'TRK-1',
    source: 'trucks',
    messages: 100,
    firstSeen: now - 48 * hour,
    lastSeen: now - 2 * hour,
    lastMappedAt: now - 2 * hour,
    blindMs: 0,
    blindUsualMs: 0,
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
    losses: isLost ? [loss] : [],
    loss: isLost ? loss : null,
    withheld: [],
    skewMs: null,
    from: null,
    isListed: true,
    isSilent: more.silentSince !== null,
    longestPauseMs: 0,
    isRepeating: (more.repeating ?? null) !== null,
    positionArrivedAt: more.position?.arrivedAt ?? null,
    ...more,
  }
}

function clientOf({ fault = null, unnamed = null, ...more }: Partial<ClientView>): ClientView {
  const wrong = { reason: 'bad_credentials', detail: 'Its password is wrong.', at: now - hour, count: 4 }
  const untaken = {
    count: 1,
    firstAt: now - 200,
    at: now - 200,
    topic: 'telemetry/v1/truck-1',
    source: null,
    became: 'dead' as const,
    reason: 'NO_SOURCE',
    detail: 'No source takes the topic.',
  }
  return clientView('truck-1', {
    since: now - 5 * hour,
    fault: fault && { ...wrong, ...fault },
    unnamed: unnamed && { ...untaken, ...unnamed },
    ...more,
  })
}

type Case = {
  device: string
  record?: Given
  client?: Partial<ClientView>
  state: string
  since: number | null
  why: string | null
}

const iso = (at: number) => new Date(at).toISOString()
const cases = timedCases(new URL('device-state-text.yaml', import.meta.url), now) as Case[]
const times: Record<string, string> = {
  '{-1h}': zonedTime(now - hour),
  '{-2h}': zonedTime(now - 2 * hour),
  '{-300ms}': zonedTime(now - 300),
}

test.each(cases)(
  'the state of a device, since when, and why: $device',
  ({ record, client, state, since, why }) => {
    const known = { record: record ? recordOf(record) : null, client: client ? clientOf(client) : null }
    expect(
      stateOf({
        ...known,
        wait: null,
        isClosed: (from: string) => from === 'down',
        topics: ['fleet/{device}/telemetry'],
        now,
      }),
    ).toEqual({
      state,
      since: since === null ? null : iso(since),
      why: why && why.replaceAll(/\{-\w+\}/g, (time) => times[time] ?? ''),
    })
  },
)
