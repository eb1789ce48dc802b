// mapping-stage.ts: what ops sees of a mapping, with values that a test sets.

import type { DeviceView, MappingStage } from '../../src/ops/ops.ts'

export function deviceView(device: string, more: Partial<DeviceView> = {}): DeviceView {
  return {
    device,
    assetId: null,
    listed: false,
    messages: 1,
    lastSeen: 1_750_000_000_000,
    skewMs: 0,
    client: null,
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
      omitted: new Map(),
      flagged: new Map(),
      watched: { devices: 0, swapped: 0, fleet: 0, beyond: 0 },
      clocks: { devices: seen.length, evictions: 0, future: 0, unset: 0, old: 0, restamped: 0 },
      skewed: [],
      release: { released: 0, payloads: 0, dead: 0, keptAgain: 0, devices: 0 },
      corrected: { released: 0, payloads: 0, dead: 0, keptAgain: 0 },
      decisions: { released: 0, dead: 0, dropped: 0 },
      deferred: { evaluated: 0, payloads: 0, dead: 0, keptAgain: 0, timeouts: 0 },
      ...view,
    }),
    device: (key) => seen.find(({ device }) => device === key) ?? null,
    async *devices() {
      yield seen
    },
  }
}
