// shelf-heads.ts: keeps what is known of the heads of shelves fresh while units wait for them: a read from
// the head of a shelf finds where it begins now.

import type { ShelfView } from '../../spool/spool.ts'
import type { Unit } from './custody-units.ts'
import type { CustodySpool } from './types.ts'

const everyMs = 500

export function createShelfHeads(spool: Pick<CustodySpool, 'keptMessages'>) {
  let readMs = 0

  async function readHead(shelf: ShelfView['shelf']): Promise<void> {
    for await (const _ of spool.keptMessages(shelf, null, { limit: 1 })) break
  }

  return {
    read(nowMs: number, shelves: readonly ShelfView[], units: readonly Unit[]): void {
      if (nowMs - readMs < everyMs) return
      const places = new Set<string>(units.map(({ place }) => place))
      const waited = shelves.filter(({ shelf, messages }) => messages > 0 && places.has(shelf.split(':')[0]!))
      if (waited.length === 0) return
      readMs = nowMs
      // A store that is lost meanwhile begins everything anew when it returns.
      for (const { shelf } of waited) readHead(shelf).catch(() => undefined)
    },
  }
}
