// state-writes.ts: hands changes of the state of the mapping to the open group of the spool.

import type { StateWrite } from '../../mapping/mapping.ts'
import type { Spool } from '../../spool/spool.ts'

export function putWrites(
  spool: Pick<Spool, 'putState' | 'putLateState'>,
  writes: readonly StateWrite[],
): void {
  for (const write of writes) {
    if (write.isWaiting === undefined) spool.putState(write.key, write.value)
    else spool.putLateState(write)
  }
}
