// custody-wiring.ts: what custody `delivered` gets of the spool, of delivery, of the mapping and of the dead
// letters: ingest does not import these stages.
//
// dead-letter-copies in the spool directory has the id of the last dead letter that was copied to the engine.
// Where it is lost, all are copied again.

import { join } from 'node:path'
import { exportLine, payloadLine } from '../../dead-letters/dead-letters.ts'
import type { Delivery } from '../../delivery/delivery.ts'
import type { CustodyDeps } from '../../ingest/ingest.ts'
import type { Spool } from '../../spool/spool.ts'
import { readRegular, replaceRegular } from '../../std/file-system/regular-file.ts'
import type { ActiveMapping } from '../active-mapping.ts'

const idPattern = /^[0-9a-f]{32}$/

export function custodyDeps(
  { spool, delivery, activeMapping }: { spool: Spool; delivery: Delivery; activeMapping: ActiveMapping },
  spoolPath: string,
): CustodyDeps {
  const markPath = join(spoolPath, 'dead-letter-copies')
  return {
    spool,
    delivery: {
      providers: delivery.providers,
      delivered: () => delivery.counters().delivered,
      ...delivery.returns,
    },
    records() {
      const { mapper } = activeMapping
      return { openParts: mapper.openParts(), openMsMax: mapper.openMsMax }
    },
    copied: {
      async read() {
        const id = (await readRegular(markPath).catch(() => '')).trim()
        return idPattern.test(id) ? id : null
      },
      write: (id) => replaceRegular(markPath, `${id}\n`, { isSynced: false }),
    },
    releaseOrder: activeMapping.release,
    releaseAgain: activeMapping.release.start,
    lineOf: exportLine,
    heldLineOf: payloadLine,
  }
}
