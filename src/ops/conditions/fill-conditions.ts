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
import type { ConditionCode } from './condition-catalogue.ts'
import type { Present } from './conditions.ts'
import type { Cause } from '../../domain/cause.ts'

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

export function createFillCauses() {
  const filling = new Set<string>()

  return function* ({ stores, ...totals }: Totals): Generator<Present> {
    const { bytesMax, reserveBytes, diskBytes, freeBytes, freeBytesMin } = totals
    const used = Math.max(usedBytes({ stores, ...totals }), diskBytes - reserveBytes)
    const intakeMax = bytesMax - reserveBytes
    if (isFilling('SPOOL_FILLING', used / (intakeMax * fillingShare)))
      yield present('SPOOL_FILLING', {
        what: `The spool uses ${formatSize(used)} of ${formatSize(intakeMax)}.`,
        why: 'More comes in than is delivered, or much is kept. `status` shows what waits.',
      })
    if (isFilling('DISK_FILLING', freeBytes === null ? 0 : (freeBytesMin * freeFactor) / freeBytes))
      yield present('DISK_FILLING', {
        what: `${formatSize(freeBytes ?? 0)} is free on the file system of the spool.`,
        why: `Below ${formatSize(freeBytesMin)} (spool.min_free_bytes) the gateway acknowledges nothing.`,
      })
    for (const store of keptStoreNames) {
      const { bytes, bytesMax: storeMax, onFull } = stores[store]
      if (isFilling(store, bytes / (storeMax * fillingShare)))
        yield present('STORE_FILLING', {
          key: store,
          what: `The store ${store} uses ${formatSize(bytes)} of ${formatSize(storeMax)}.`,
          why: nextSteps[onFull],
          severity: onFull === 'hold' ? 'warning' : 'info',
        })
    }
  }

  /** `share`: 1 where the condition begins. */
  function isFilling(name: string, share: number): boolean {
    const is = share >= (filling.has(name) ? clearShare : 1)
    if (is) filling.add(name)
    else filling.delete(name)
    return is
  }
}

function present(code: ConditionCode, cause: Cause): Present {
  return { code, cause }
}

/** As the limit of the spool counts it. */
export function usedBytes({ openBytes, stores, stateBytes, receiptBytes }: Totals): number {
  return keptStoreNames.reduce(
    (sum, store) => sum + stores[store].bytes,
    openBytes + stateBytes + receiptBytes,
  )
}
