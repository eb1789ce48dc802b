// endpoint-probe.ts: tries now what waits for a back-off or a slow probe, and waits for what comes of it.

import { pause, type Clock } from '../std/clock.ts'
import type { Delivery } from '../delivery/delivery.ts'
import type { ProbeReport } from '../ops/ops.ts'

const lookEveryMs = 50
/** Whoever asked gets the state of then; the try itself goes on. */
const waitMaxMs = 20_000

export async function probe(
  { delivery, clock }: { delivery: Pick<Delivery, 'probe' | 'providers'>; clock: Clock },
  signal: AbortSignal,
): Promise<ProbeReport> {
  const closed = new Set<string>()
  for (const { name, endpoint } of delivery.providers()) if (endpoint !== 'available') closed.add(name)
  delivery.probe()
  const untilMs = clock.monotonic() + waitMaxMs
  while (clock.monotonic() < untilMs && delivery.providers().some(isTrying))
    if (!(await pause(clock, lookEveryMs, signal))) break
  return { now: clock.now(), providers: delivery.providers() }

  /** One that delivers has always something under way. */
  function isTrying({ name, endpoint, inFlight }: ReturnType<Delivery['providers']>[number]): boolean {
    return closed.has(name) && endpoint !== 'available' && inFlight > 0
  }
}
