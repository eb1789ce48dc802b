// metrics-view.ts: what a scrape can see: what /status is made of, and the numbers of ops itself.

import type { Verdict } from '../gateway-verdict/gateway-verdict.ts'
import type { HttpCounters } from '../http/http.ts'
import type { Seen } from '../status-schema/seen.ts'

export type MetricsView = Seen & {
  verdict: Verdict
  linesLost: number
  linesSuppressed: number
  /** Null before the server listens. */
  http: HttpCounters | null
  acceptedByLane: ReadonlyMap<string, number>
  eventLoopLag: { p50S: number; p99S: number; maxS: number }
}
