// types.ts: what the pipeline of a provider gets and gives.

import type { Clock } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import type { State } from '../../domain/condition-state.ts'
import type { Spool } from '../../spool/spool.ts'
import type { BatchControl } from '../batch-operations/batch-operations.ts'
import type { CounterSet } from '../delivery-counters.ts'
import type { ProviderOptions } from '../delivery-options.ts'
import type { LaneReturns } from '../returns/lane-returns.ts'
import type { TotalShare } from '../total-share.ts'
import type { SenderWorker } from '../transport/sender-worker.ts'
import type { ProviderView, SettledBatch } from '../types.ts'

export type ProviderPipeline = {
  start(): void
  stop(deadline: AbortSignal): Promise<void>
  probe(): void
  /** Puts other options, keys and certificates in force, of the same provider and service. */
  renew(options: ProviderOptions): void
  payloadsAdded(payloads: number): void
  lost(): void
  reopened(): void
  /** The dead letters have room again. */
  deadLettersHaveRoom(): void
  view(): ProviderView
  states(): Iterable<State>
  clockOffsetMs(): number | null
  readonly batchControl: BatchControl
  readonly laneReturns: LaneReturns
}

export type PipelineDeps = {
  spool: Spool
  clock: Clock
  random: () => number
  emit: Emit
  env: NodeJS.ProcessEnv
  counters: CounterSet
  /** Settles write receipts. */
  ledger: boolean
  senderWorker: SenderWorker
  /** Payload bytes of one provider that may wait for room in the dead letters. */
  waitingBytesMax: () => number
  /** Receives each settled batch. */
  settled?: (batch: SettledBatch) => void
  /** The places for the submissions of all providers. */
  total: TotalShare
}
