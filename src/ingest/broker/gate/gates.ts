// gates.ts: the gates of the open connections, and what they share.

import type { Intake } from '../../intake/intake.ts'
import type { Connection } from '../connection-limits/connection-limits.ts'
import { createAckWriter } from './acks/ack-writer.ts'
import { createGate, type Gate, type GateDeps, type GateOptions } from './gate.ts'
import { createPagePool } from './partial-packet/page-pool.ts'
import { createPartialBudget, type PartialCounters } from './partial-packet/partial-budget.ts'
import { createPausedGates } from './paused-gates.ts'
import { createSilenceWatch } from './silence.ts'
import { createTurns } from './turns.ts'
import type { DeviceSocket } from './device-socket.ts'

export type GatesOptions = GateOptions & {
  /** Partial packets of all connections. */
  partialBytesMax: number
}

export type GateCounters = PartialCounters & { connections: number }

export type Gates = {
  open(socket: DeviceSocket, connection: Connection): Gate
  all(): Iterable<Gate>
  /** Nothing more is read; acks are still written. */
  stopReading(): void
  /** Ends all connections once everything is written, or after `timeoutMs`. */
  end(timeoutMs: number): Promise<void>
  counters(): GateCounters
}

type Deps = Pick<
  GateDeps,
  | 'clock'
  | 'message'
  | 'connectCame'
  | 'publish'
  | 'takePacket'
  | 'onPing'
  | 'onHalfClosed'
  | 'onDrop'
  | 'onClose'
> & {
  intake: Pick<Intake, 'readingPaused' | 'load' | 'pausesSender' | 'onReadingChange'>
}

export function createGates({ intake, ...deps }: Deps, options: GatesOptions): Gates {
  const gates = new Set<Gate>()
  const pausedGates = createPausedGates(intake)
  const partialBudget = createPartialBudget(options)
  const silence = createSilenceWatch(deps.clock)
  const shared = {
    ...deps,
    onClose,
    writer: createAckWriter(),
    turns: createTurns(),
    partial: { budget: partialBudget, pool: createPagePool() },
    load: intake.load,
    pause: pausedGates.pause,
    readingPaused: (gate: Gate) => pausedGates.mustPause(gate) || gate.connection.budget?.isSpent() === true,
  }
  let stopped = false

  function open(socket: DeviceSocket, connection: Connection): Gate {
    const gate = createGate({ socket, connection }, shared, options)
    gates.add(gate)
    silence.add(gate)
    if (stopped) gate.stopReading()
    return gate
  }

  function onClose(gate: Gate): void {
    gates.delete(gate)
    silence.remove(gate)
    pausedGates.delete(gate)
    deps.onClose(gate)
  }

  function stopReading(): void {
    stopped = true
    for (const gate of gates) gate.stopReading()
  }

  async function end(timeoutMs: number): Promise<void> {
    stopReading()
    silence.close()
    await Promise.all([...gates].map((gate) => gate.end(timeoutMs)))
  }

  return {
    open,
    all: () => gates,
    stopReading,
    end,
    counters: () => ({ connections: gates.size, ...partialBudget.counters() }),
  }
}
