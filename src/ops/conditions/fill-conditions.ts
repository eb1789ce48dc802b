// fill-conditions.ts: warnings long before a limit of the spool is reached. They follow the totals of the
// spool, because what fills slowly has no event.
//
//   SPOOL_FILLING   the spool uses three quarters of spool.max_bytes without the reserve for settling: beyond
//                   that it takes nothing in
//   DISK_FILLING    less than twice spool.min_free_bytes is free
//   STORE_FILLING   a store of kept messages uses three quarters of its limit; one for each store
//
// A store that drops its oldest messages is full for ever where unlisted devices send: `info` for those.
// Each is cleared at 0.9 of where it is raised, so that it does not flap.

import { formatSize } from '../../std/quantity.ts'
import { keptStoreNames, type OnFull } from '../../domain/kept-store.ts'
import type { SpoolTotals } from '../../spool/spool.ts'
import type { ConditionCode, Severity } from './condition-catalogue.ts'
import type { Conditions } from './conditions.ts'

type Totals = Pick<
  SpoolTotals,
  | 'openBytes'
  | 'stores'
  | 'stateBytes'
  | 'receiptBytes'
  | 'bytesMax'
  | 'reserveBytes'
  | 'diskBytes'
  | 'freeBytes'
  | 'freeBytesMin'
>

const fillingShare = 0.75
const clearShare = 0.9
/** Free space, as a multiple of the minimum. */
const freeFactor = 2

const nextSteps: Record<OnFull, string> = {
  hold: 'When it is full, messages for it wait without an acknowledgement.',
  drop_oldest: 'When it is full, the oldest messages of the device or client with the most are deleted.',
}

export function createFillConditions(conditions: Pick<Conditions, 'raise' | 'clear'>) {
  const filling = new Set<string>()
  return { update }

  function update(totals: Totals): void {
    const { bytesMax, reserveBytes, diskBytes } = totals
    const used = Math.max(usedBytes(totals), diskBytes - reserveBytes)
    const intakeMax = bytesMax - reserveBytes
    judge('SPOOL_FILLING', null, used / (intakeMax * fillingShare), () => ({
      what: `The spool uses ${formatSize(used)} of ${formatSize(intakeMax)}.`,
      why: 'More comes in than is delivered, or much is kept. `status` shows what waits.',
    }))
    const { freeBytes, freeBytesMin } = totals
    judge('DISK_FILLING', null, freeBytes === null ? 0 : (freeBytesMin * freeFactor) / freeBytes, () => ({
      what: `${formatSize(freeBytes ?? 0)} is free on the file system of the spool.`,
      why: `Below ${formatSize(freeBytesMin)} (spool.min_free_bytes) the gateway acknowledges nothing.`,
    }))
    for (const store of keptStoreNames) {
      const { bytes, bytesMax, onFull } = totals.stores[store]
      judge('STORE_FILLING', store, bytes / (bytesMax * fillingShare), () => ({
        what: `The store ${store} uses ${formatSize(bytes)} of ${formatSize(bytesMax)}.`,
        why: nextSteps[onFull],
        severity: onFull === 'hold' ? 'warning' : 'info',
      }))
    }
  }

  /** `share`: 1 where the condition begins. */
  function judge(
    code: ConditionCode,
    key: string | null,
    share: number,
    texts: () => { what: string; why: string; severity?: Severity },
  ): void {
    const name = `${code}|${key}`
    if (share >= (filling.has(name) ? clearShare : 1)) {
      filling.add(name)
      conditions.raise(code, { key, ...texts(), present: 1 })
    } else if (filling.delete(name)) conditions.clear(code, key)
  }
}

/** As the limit of the spool counts it. */
export function usedBytes({ openBytes, stores, stateBytes, receiptBytes }: Totals): number {
  return keptStoreNames.reduce(
    (sum, store) => sum + stores[store].bytes,
    openBytes + stateBytes + receiptBytes,
  )
}
