// intake-deps.ts: what the intake works with, and its bounds.

import type { Clock } from '../../std/clock.ts'
import type { OurTime } from '../../domain/arrival.ts'
import type { Emit } from '../../domain/event.ts'
import type { IntakeMapper, IntakeSpool, ReleaseOrder, RequestRebirth } from '../types.ts'
import type { Tap } from './message-tap.ts'
import type { NotePayload } from './result-router.ts'

export type IntakeDeps = {
  /** In force until swap(). */
  mapper: IntakeMapper
  spool: IntakeSpool
  clock: Clock
  ourTime: OurTime
  emit: Emit
  releaseOrder?: ReleaseOrder
  tap?: Tap
  /** Receives each payload that was stored or is a duplicate. */
  notePayload?: NotePayload
  requestRebirth?: RequestRebirth
  /** Sessions of the broker, which are read again with the state. */
  sessions?: { lost(): void; restore(): Promise<void> }
}

export type IntakeOptions = {
  /** Bounds of what waits while the spool takes nothing in; at the bound reading stops. */
  heldMessagesMax: number
  heldBytesMax: number
}
