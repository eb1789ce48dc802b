// endpoint-probe.ts: retries waiting batches and endpoints at once, and waits for the outcome.

import { pause, type Clock } from '../std/clock.ts'
import type { Delivery } from '../delivery/delivery.ts'
import type { ProbeReport } from '../ops/ops.ts'

const checkEveryMs = 50
/** After it the caller gets the present state; the attempt continues. */
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
    if (!(await pause(clock, checkEveryMs, signal))) break
  return { now: clock.now(), providers: delivery.providers() }

  /** A provider that was available may always have submissions in flight: it is not waited for. */
  function isTrying({ name, endpoint, inFlight }: ReturnType<Delivery['providers']>[number]): boolean {
    return closed.has(name) && endpoint !== 'available' && inFlight > 0
  }
}
