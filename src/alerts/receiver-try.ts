// receiver-try.ts: one try of a receiver within its time, whatever the receiver does.

import { messageOf } from '../std/gateway-error.ts'
import { formatDuration } from '../std/quantity.ts'
import type { Clock } from '../std/clock.ts'
import type { State } from '../domain/condition-state.ts'
import type { Sent } from './types.ts'

/** For ending a try: connections and child processes are killed then. */
const endingMs = 3000

/** Never rejects. */
export async function tryOnce(
  clock: Clock,
  { timeoutMs }: { timeoutMs: number },
  send: (ends: AbortSignal) => Promise<Sent>,
  stop: AbortSignal,
): Promise<Sent> {
  const late = new AbortController()
  const timeout = Promise.withResolvers<Sent>()
  const failed: Sent = {
    kind: 'failed',
    why: `It took longer than ${formatDuration(timeoutMs)}`,
    act: 'Check that the receiver works. If it needs more time, raise its `timeout`.',
    retryAfterMs: null,
    mayHaveArrived: true,
  }
  // A try that does not even end then is left alone.
  const leave = () => {
    cancel()
    cancel = clock.after(endingMs, () => timeout.resolve(failed))
  }
  let cancel = clock.after(timeoutMs, () => {
    late.abort()
    leave()
  })
  if (stop.aborted) leave()
  else stop.addEventListener('abort', leave, { once: true })
  try {
    const sent = await Promise.race([send(AbortSignal.any([late.signal, stop])), timeout.promise])
    return late.signal.aborted && sent.kind === 'failed' ? failed : sent
  } catch (error) {
    // A fault of ours must not stop the alerts.
    return {
      ...failed,
      why: `It failed with a fault: ${messageOf(error)}`,
      act: 'Keep the log and report it.',
    }
  } finally {
    stop.removeEventListener('abort', leave)
    cancel()
  }
}

/** Tries in a row. Fewer are an interruption that a person need not know. */
const failuresMax = 3

export function failingState(
  receiver: string,
  { failures, why, act }: { failures: number; why: string | null; act: string },
): State[] {
  if (failures < failuresMax) return []
  return [{ code: 'ALERTS_FAILING', receiver, failures, why: why ?? '', act }]
}
