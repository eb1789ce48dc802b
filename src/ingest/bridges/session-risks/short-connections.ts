// short-connections.ts: finds connections that break again and again soon after they were opened. Where the
// broker just closes them, the usual cause is another client with the same client id: each connection of one
// ends that of the other. A broker of MQTT 3.1.1 does not say so.

import type { CancelTimer, Clock } from '../../../std/clock.ts'
import type { Fault } from '../bridge-faults/bridge-faults.ts'

export type ShortConnections = {
  opened(): void
  /** `openMs`: how long it was open. */
  lost(openMs: number, fault: Fault): void
  close(): void
}

const shortMs = 30_000
const severalTimes = 3
/** A connection that is open for this time ends the risk. */
const calmMs = 60_000

export function createShortConnections(
  clock: Clock,
  report: (found: { times: number; fault: Fault } | null) => void,
): ShortConnections {
  let times = 0
  let cancel: CancelTimer = () => {}

  function opened(): void {
    cancel()
    cancel = clock.after(calmMs, () => {
      if (times >= severalTimes) report(null)
      times = 0
    })
  }

  function lost(openMs: number, fault: Fault): void {
    cancel()
    times = openMs < shortMs ? times + 1 : 0
    if (times >= severalTimes) report({ times, fault })
  }

  return { opened, lost, close: () => cancel() }
}
