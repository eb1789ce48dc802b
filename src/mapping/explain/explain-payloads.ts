// explain-payloads.ts: which payload each record of a message became.

import type { MappedPayload } from '../../domain/payload.ts'
import type { Trace } from './explain-trace.ts'

/** The records with their payloads. A record may have none, because a privacy profile withheld it. */
export function withPayloads(
  traces: readonly Trace[],
  payloads: readonly MappedPayload[],
): [Trace, MappedPayload | null][] {
  let left = [...payloads]
  const complete = traces.filter(({ fields }) => fields !== null).length
  return traces.map((trace) => {
    const [next] = left
    if (trace.fields === null || !next) return [trace, null]
    // With as many payloads as records each record has one. Otherwise time and values decide.
    if (complete !== payloads.length && !(hasTimeOf(trace, next) && hasValuesOf(trace, next)))
      return [trace, null]
    left = left.slice(1)
    return [trace, next]
  })
}

/** An old position may have its own time. */
function hasTimeOf({ time, takenAt }: Trace, { deviceTime }: MappedPayload): boolean {
  const isKnown = deviceTime !== null && time !== null && Number.isFinite(time)
  return !isKnown || deviceTime === time || deviceTime === takenAt
}

function hasValuesOf({ gps, signals }: Trace, { json }: MappedPayload): boolean {
  const place = gps === null || gps === '' ? '' : gps.slice(0, -1)
  return json.includes(place) && (signals ?? []).every((signal) => json.includes(signal))
}
