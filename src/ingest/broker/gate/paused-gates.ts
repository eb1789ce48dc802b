// paused-gates.ts: the gates that found reading paused by the intake, for all or for their connection. They
// resume in this order.

import type { Sender } from '../../../domain/message.ts'
import type { Intake } from '../../intake/intake.ts'

type PausedGate = { readonly sender: Sender | null; resumeReading(): void }

export type PausedGates = {
  /** Whether the gate must not read now; if so, it resumes when the intake has room. */
  mustPause(gate: PausedGate): boolean
  delete(gate: PausedGate): void
}

export function createPausedGates(
  intake: Pick<Intake, 'readingPaused' | 'pausesSender' | 'onReadingChange'>,
): PausedGates {
  const gates = new Set<PausedGate>()
  let resuming = false
  intake.onReadingChange(readingChanged)
  return { mustPause, delete: (gate) => void gates.delete(gate) }

  function mustPause(gate: PausedGate): boolean {
    if (!intake.readingPaused && !isPaused(gate)) return false
    gates.add(gate)
    return true
  }

  function isPaused({ sender }: PausedGate): boolean {
    return sender !== null && intake.pausesSender(sender)
  }

  function readingChanged(): void {
    if (intake.readingPaused || resuming || gates.size === 0) return
    resuming = true
    // Deferred, so that reading does not start inside the commit that made room.
    setImmediate(resumeAll)
  }

  function resumeAll(): void {
    resuming = false
    for (const gate of gates) {
      if (intake.readingPaused) return
      if (isPaused(gate)) continue
      gates.delete(gate)
      gate.resumeReading()
    }
  }
}
