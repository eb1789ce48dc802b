// intake-counters.ts: what the intake counts; the terms of its conservation (intake.ts).

import type { EpochMs } from '../../std/clock.ts'
import type { RoutedCounters } from './result-router.ts'
import type { ResendCounters } from './untimed-resends.ts'

/** Messages since the start. */
export type IntakeCounters = RoutedCounters &
  ResendCounters & {
    received: number
    /** When the last one arrived; null before the first. */
    lastMessageAt: EpochMs | null
    bytes: number
    /** QoS 0 messages that could not be kept. */
    dropped: number
    /** Never acknowledged: their connection ended while they waited, so the device still has them. */
    returned: number
    /** Waiting now. */
    held: number
    /** In open records now, and those of them that were open when the state was read. */
    openParts: number
    carried: number
  }
