// release-order.ts: decides whether a message must wait because earlier ones of its device are being released
// from quarantine: as a payload, or as part of one, it would overtake them. A message about several devices
// waits behind the first of them that is being released.

import type { MapResult } from '../../mapping/mapping.ts'
import type { ReleaseOrder } from '../types.ts'

type Device = Extract<MapResult, { kind: 'part' }>['records'][number]['entry']

/** The device whose earlier messages come first; null where the message may continue. */
export function deviceBefore(result: MapResult, releaseOrder: ReleaseOrder): Device | null {
  switch (result.kind) {
    case 'payloads':
      for (const payload of result.payloads) if (releaseOrder.isReleasing(payload.device)) return payload
      return null
    case 'part':
      for (const { entry } of result.records) if (releaseOrder.isReleasing(entry.device)) return entry
      return null
    case 'ignored':
    case 'quarantined':
    case 'unmappable':
    default:
      return null
  }
}
