// ends.ts: how processes end, and what the next one says of it.

import type { GatewayEvent } from '../../../src/domain/event.ts'
import type { Machine } from '../machine/machine.ts'
import type { Trouble } from './deliveries.ts'

export type Ends = {
  /** A disk act begins; the returned function ends it. */
  faulty(end: (() => void) | undefined): (() => void) | undefined
  /**
   * SIGTERM was given; the returned function is called when the process has ended, by itself or otherwise, and says
   * whether nothing went wrong meanwhile.
   */
  stopping(): (isInOrder: boolean) => boolean
  observe(event: GatewayEvent): void
  /** A process ended by itself. */
  isExcused(why: string): boolean
  /** Ends of processes and disk acts: what was answered just before may not have been settled. */
  troubles: readonly Trouble[]
}

/** ops.stop_deadline of the config, and what the gateway adds to it where the disk hangs. */
const deadlineMs = 30_000
const lastMs = 2500

export function createEnds(machine: Machine, broken: string[]): Ends {
  const { kernel } = machine
  let faults = 0
  let lastFaultMs = 0
  /** The last process was stopped, and the disk did nothing wrong meanwhile. */
  let wasClean = false
  let cleanMs = 0
  /** The process that runs is the first one since. */
  let isAfterClean = false
  const troubles: Trouble[] = []
  const { kill, powerCut } = machine
  machine.kill = noted(kill)
  machine.powerCut = noted(powerCut)
  return {
    troubles,
    faulty(end) {
      if (end === undefined) return undefined
      faults += 1
      const trouble = { fromMs: kernel.monotonicMs, toMs: Number.POSITIVE_INFINITY }
      troubles.push(trouble)
      let isOver = false
      return () => {
        end()
        if (isOver) return
        isOver = true
        faults -= 1
        lastFaultMs = kernel.monotonicMs
        trouble.toMs = kernel.monotonicMs
      }
    },
    stopping() {
      const { life, monotonicMs: sinceMs } = kernel
      const wasFaulty = isFaulty()
      kernel.at(deadlineMs + lastMs, () => {
        if (kernel.life === life)
          broken.push(`SIGTERM of ${at(sinceMs)} did not end the process in ${deadlineMs} ms`)
      })
      return (isInOrder) => {
        wasClean = isInOrder && !wasFaulty && !isFaulty() && lastFaultMs < sinceMs
        cleanMs = kernel.monotonicMs
        const last = troubles.at(-1)
        // What was answered was settled.
        if (wasClean && last?.fromMs === kernel.monotonicMs && last.toMs === last.fromMs) troubles.pop()
        return wasClean
      }
    },
    observe({ kind }) {
      if (kind === 'gateway_ended_unclean' && isAfterClean && !isFaulty() && lastFaultMs < cleanMs)
        broken.push(`${at(kernel.monotonicMs)}: a start after a clean stop says that the end was not clean`)
      if (kind !== 'gateway_starting') return
      isAfterClean = wasClean
      wasClean = false
    },
    isExcused: (why) =>
      // Permissions are for a person; systemd tries again.
      /may not write there: EACCES/.test(why) ||
      // It was there when the start began. The next start refuses to begin without it, and waits.
      (/A directory above it does not exist/.test(why) && isFaulty()) ||
      // A disk that hangs cannot be closed.
      (/deadline of its stop/.test(why) && (isFaulty() || kernel.monotonicMs - lastFaultMs < deadlineMs)),
  }

  function noted(end: () => void): () => void {
    return () => {
      // The power may be cut after the end of the process.
      wasClean = false
      troubles.push({ fromMs: kernel.monotonicMs, toMs: kernel.monotonicMs })
      end()
    }
  }

  function isFaulty(): boolean {
    return faults > 0
  }

  function at(ms: number): string {
    return (ms / 1000).toFixed(3)
  }
}
