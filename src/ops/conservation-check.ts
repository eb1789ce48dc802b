// conservation-check.ts: watches that nothing disappears between two counters (invariant 6). The spool checks its lanes by walking
// over them; here the sums of /status are looked at whenever somebody reads them.
//
//   lanes      appended = settled + open, which hold at every moment: a difference is a fault at once
//   messages   received = what became of them; a fault where the same difference stays, since a stop or a loss of the store
//              may be seen half way

import type { Clock } from '../std/clock.ts'
import type { Conditions } from './conditions/conditions.ts'
import type { Status } from './status.ts'

const staysMs = 10_000

const act = 'Keep a copy of the spool directory and the log, see `spool verify`, and report it.'

export function createBalance({ clock, conditions }: { clock: Clock; conditions: Conditions }): {
  look(conservation: Status['conservation']): void
} {
  /** The difference of the messages, and since when it is that. */
  let stays = { difference: 0, sinceMs: 0 }
  return { look }

  function look({ lanes, messages }: Status['conservation']): void {
    for (const { id, appended, settled, open, difference } of lanes) {
      if (difference === 0) continue
      conditions.raise({
        code: 'CONSERVATION_BROKEN',
        key: `lane ${id}`,
        severity: 'critical',
        what: `Lane ${id}: ${appended} appended, but ${settled} settled and ${open} open.`,
        why: 'Either stored data was lost or this is a fault of the gateway.',
        act,
      })
    }
    lookAtMessages(messages)
  }

  function lookAtMessages({
    received,
    carried,
    accounted,
    difference,
  }: Status['conservation']['messages']): void {
    const nowMs = clock.monotonic()
    if (difference !== stays.difference) stays = { difference, sinceMs: nowMs }
    if (difference === 0) conditions.clear('CONSERVATION_BROKEN', 'messages')
    else if (nowMs - stays.sinceMs >= staysMs)
      conditions.raise({
        code: 'CONSERVATION_BROKEN',
        key: 'messages',
        severity: 'critical',
        what: `${received} messages were received and ${carried} were open before, but ${accounted} are accounted for.`,
        why: 'A message became nothing that is counted. This is a fault of the gateway.',
        act,
      })
  }
}
