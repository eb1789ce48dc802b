// mapping-stage.ts: what ops sees of a mapping, with values that a test sets.

import { noDevices } from '../../src/domain/device-state.ts'
import type { DeviceView, MappingStage } from '../../src/ops/ops.ts'

export function deviceView(device: string, more: Partial<DeviceView> = {}): DeviceView {
  return {
    device,
    assetId: null,
    listed: false,
    kind: 'device',
    provider: 'default',
    source: null,
    state: 'sending',
    since: null,
    why: null,
    messages: 1,
    messagesPerHour: 1,
    medianGapMs: null,
    firstSeen: '2025-06-15T15:06:40.000Z',
    lastSeen: '2025-06-15T15:06:40.000Z',
    silentSince: null,
    mutedUntil: null,
    mutedBy: null,
    skewMs: 0,
    client: null,
    position: null,
    lastAccepted: null,
    lastRefused: null,
    duplicates: 0,
    ignored: 0,
    deadLetters: 0,
    quarantined: 0,
    reasons: [],
    withheld: [],
    ...more,
  }
}

export function mappingStage(
  view: Partial<ReturnType<MappingStage['view']>> = {},
  seen: readonly DeviceView[] = [],
): MappingStage {
  return {
    view: () => ({
      since: 1_750_000_000_000,
      sources: 1,
      openParts: 0,
      omitted: [],
      flagged: [],
      watched: { devices: 0, swapped: 0, fleet: 0, beyond: 0 },
      clocks: { devices: seen.length, evictions: 0, future: 0, past: 0, unset: 0, old: 0, restamped: 0 },
      skewed: [],
      release: { released: 0, payloads: 0, dead: 0, keptAgain: 0, devices: 0 },
      corrected: { released: 0, payloads: 0, dead: 0, keptAgain: 0 },
      decisions: { released: 0, dead: 0, dropped: 0 },
      deferred: { payloads: 0, dead: 0 },
      ...view,
    }),
    messagesByHour: () => null,
    messages: () => Promise.resolve({ messages: [], skipped: 0 }),
    device: (key) => seen.find(({ device }) => device === key) ?? null,
    async *devices() {
      yield seen
    },
    deviceTotals: () => ({
      devices: seen.length,
      devicesMax: 50_000,
      evicted: 0,
      expired: 0,
      notRecorded: 0,
      unreadable: 0,
      restored: true,
      waiting: 0,
      written: 0,
      rings: 0,
      ringBytes: 0,
      notKept: 0,
      listed: 0,
      states: noDevices(),
      total: 0,
      seen: seen.length,
      checkedAt: null,
    }),
  }
}
