// paused-gates.ts: the gates that found reading paused by the intake, for all or for their connection, or
// that have read their share while it is busy. They resume in this order.

import type { Sender } from '../../../domain/message.ts'
import type { Intake } from '../../intake/intake.ts'

type PausedGate = { readonly sender: Sender | null; resumeReading(): void }

/**
 * These resume although the intake is busy again: it may always be busy with the shares of other connections.
 */
const resumedMin = 50

export type PausedGates = {
  /** Whether the gate must not read now; if so, it resumes when the intake has room. */
  mustPause(gate: PausedGate): boolean
  /** The gate has read its share: it resumes when the intake is no longer busy. */
  pause(gate: PausedGate): void
  delete(gate: PausedGate): void
}

export function createPausedGates(
  intake: Pick<Intake, 'readingPaused' | 'load' | 'pausesSender' | 'onReadingChange'>,
): PausedGates {
  const gates = new Set<PausedGate>()
  let resuming = false
  intake.onReadingChange(readingChanged)
  return { mustPause, pause: (gate) => void gates.add(gate), delete: (gate) => void gates.delete(gate) }

  function mustPause(gate: PausedGate): boolean {
    if (!intake.readingPaused() && !isPaused(gate)) return false
    gates.add(gate)
    return true
  }

  function isPaused({ sender }: PausedGate): boolean {
    return sender !== null && intake.pausesSender(sender)
  }

  function readingChanged(): void {
    if (intake.readingPaused() || intake.load.busy() || resuming || gates.size === 0) return
    resuming = true
    // Deferred, so that reading does not start inside the commit that made room.
    setImmediate(resumeAll)
  }

  function resumeAll(): void {
    resuming = false
    let resumed = 0
    for (const gate of gates) {
      if (intake.readingPaused() || (intake.load.busy() && resumed >= resumedMin)) return
      resumed += 1
      if (isPaused(gate)) continue
      gates.delete(gate)
      gate.resumeReading()
    }
  }
}
