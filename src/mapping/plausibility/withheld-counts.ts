// withheld-counts.ts: what was left out of payloads, or sent although it is not plausible: in all, and by
// device. A person asks about one device; the metrics have no label for it.
//
// The memory is bounded: devicesMax devices with keysMax kinds of values each. Of more devices the ones that
// had nothing for the longest time are forgotten; further kinds of one device are counted in all only.

import type { WithheldValue } from '../../domain/payload.ts'
import { createCache } from '../bounded-cache.ts'
import type { Finding } from '../types.ts'

export type WithheldCounts = ReturnType<typeof createWithheldCounts>

const devicesMax = 16_384
const keysMax = 32

type Count = { count: number; isSent: boolean; lastValue: number | null }

export function createWithheldCounts() {
  const omitted = new Map<string, number>()
  const flagged = new Map<string, number>()
  const devices = createCache<Map<string, Count>>(devicesMax)
  return { omitted, flagged, omit, implausible, ofDevice }

  /** `device` is '' where it is not known. `ofDevice` says more, and is counted for the device alone. */
  function omit(device: string, key: string, ofDevice = key): void {
    /** Keyed `source|field|why`. */
    omitted.set(key, (omitted.get(key) ?? 0) + 1)
    count(device, ofDevice, false, null)
  }

  function implausible(
    device: string,
    { key, isSent }: Pick<Finding, 'key' | 'isSent'>,
    value: number | null,
  ): void {
    const counts = isSent ? flagged : omitted
    counts.set(key, (counts.get(key) ?? 0) + 1)
    count(device, key, isSent, value)
  }

  function count(device: string, key: string, isSent: boolean, lastValue: number | null): void {
    if (device === '') return
    let own = devices.get(device)
    if (own === undefined) {
      own = new Map()
      devices.set(device, own)
    }
    const known = own.get(key)
    if (known !== undefined) {
      known.count += 1
      known.lastValue = lastValue
    } else if (own.size < keysMax) {
      own.set(key, { count: 1, isSent, lastValue })
    }
  }

  function ofDevice(device: string): readonly WithheldValue[] {
    return [...(devices.get(device) ?? [])].map(([key, value]) => ({ ...partsOf(key), ...value }))
  }
}

/** `omitted` or `flagged` as a list, for those who show them. */
export function withheldByField(counts: ReadonlyMap<string, number>): readonly WithheldField[] {
  return [...counts].map(([key, values]) => ({ ...partsOf(key), values }))
}

export type WithheldField = ReturnType<typeof partsOf> & { values: number }

/** Of these only a source may have a `|`. */
function partsOf(key: string): { source: string; field: string; reason: string } {
  const parts = key.split('|')
  const reason = parts.pop() ?? ''
  const field = parts.pop() ?? ''
  return { source: parts.join('|'), field, reason }
}
