// condition-rules.ts: which event opens and closes which condition. What a condition says stands in condition-texts.ts.
//
// Conditions about a state (unavailable, full, lost) are cleared by the event that ends it. Conditions about
// something that happened (dead letters, drops, odd answers) stay until they were quiet for an hour or, where
// data needs a person's hand, until the daemon is started again.

import { assertNever } from '../../std/assert.ts'
import type { GatewayEvent, HoldReason } from '../../domain/event.ts'
import * as advice from './condition-texts.ts'
import type { ConditionCode, Conditions } from './conditions.ts'
import { applyLedger } from './ledger-conditions.ts'
import { applyLetters } from './dead-letter-conditions.ts'
import { applyMapping } from './mapping-conditions.ts'
import { applyUpstream } from './delivery-conditions.ts'

const hourMs = 3_600_000

export type Rules = {
  apply(this: void, event: GatewayEvent): void
  /** Takes in what the counters know: not every dead letter and every drop has an event of its own. */
  reconcile(counted: { dead: number; dropped: number; letters: number }): void
}

export function createRules(conditions: Conditions): Rules {
  /** What conditions were raised for since the start, to compare with the counters. */
  let deadRaised = 0
  let droppedRaised = 0
  let lettersSeen = 0

  return { apply, reconcile }

  function apply(event: GatewayEvent): void {
    switch (event.kind) {
      case 'endpoint_available':
      case 'endpoint_unavailable':
      case 'endpoint_unauthorized':
      case 'credentials_failed':
      case 'credentials_found':
      case 'credentials_stale':
      case 'credentials_refreshed':
      case 'service_clock_off':
      case 'service_clock_right':
      case 'provider_unknown':
        applyUpstream(conditions, event)
        return
      case 'spool_held':
      case 'spool_resumed':
      case 'store_lost':
      case 'store_reopen_failed':
      case 'store_reopened':
      case 'chunk_damaged':
      case 'conservation_broken':
      case 'record_damaged':
      case 'records_unbalanced':
        applySpool(event)
        return
      case 'batch_stuck':
      case 'batch_unstuck':
      case 'batch_settled':
      case 'batch_split':
      case 'wrapper_refused':
      case 'answer_inconsistent':
        applyBatch(event)
        return
      case 'dead_letters_full':
      case 'dead_letters_resumed':
      case 'dead_letters_requeued':
      case 'dead_letters_remapped':
      case 'dead_letter_edited':
      case 'dead_letters_imported':
      case 'dead_letters_purged':
        applyLetters(conditions, event)
        return
      case 'listener_failed':
        conditions.raise({ code: 'LISTENER_FAILED', severity: 'critical', ...advice.ofFault(event.fault) })
        return
      case 'listener_opened':
        conditions.clear('LISTENER_FAILED')
        return
      case 'messages_dropped':
        raiseDropped(event.count, event.detail)
        return
      case 'message_unmappable':
      case 'payload_dead_lettered':
        raiseDeadLetters(1, advice.latestDeath(event))
        return
      case 'mapping_reloaded':
      case 'mapping_refused':
      case 'model_unknown':
      case 'clock_suspect':
      case 'clock_trusted':
      case 'expressions_failed':
      case 'expressions_resumed':
        applyMapping(conditions, event)
        return
      case 'ledger_opened':
      case 'ledger_failed':
      case 'ledger_set_aside':
      case 'ledger_receipts_damaged':
        applyLedger(conditions, event)
        return
      // Nothing is wrong with these, or the state they belong to has an event of its own.
      case 'spool_recovered':
      case 'spool_compacted':
      case 'client_refused':
      case 'client_dropped':
      case 'message_quarantined':
      case 'quarantine_released':
      case 'quarantine_decided':
      case 'restart_needed':
      case 'batch_sealed':
      case 'submission_ended':
      case 'batch_held':
      case 'lane_rotated':
      case 'gateway_starting':
      case 'gateway_ready':
      case 'gateway_stopping':
      case 'gateway_stopped':
        return
      default:
        assertNever(event)
    }
  }

  function applySpool(
    event: Exclude<
      Extract<
        GatewayEvent,
        {
          kind:
            | `spool_${string}`
            | `store_${string}`
            | `record${string}`
            | 'chunk_damaged'
            | 'conservation_broken'
        }
      >,
      { kind: 'spool_recovered' | 'spool_compacted' }
    >,
  ): void {
    switch (event.kind) {
      case 'spool_held':
        clearHolds()
        conditions.raise({ code: holdCodes[event.reason], severity: 'critical', ...advice.held(event) })
        return
      case 'spool_resumed':
        clearHolds()
        return
      case 'store_lost':
      case 'store_reopen_failed':
        conditions.raise({ code: 'STORE_LOST', severity: 'critical', ...advice.ofFault(event.fault) })
        return
      case 'store_reopened':
        conditions.clear('STORE_LOST')
        return
      case 'chunk_damaged': {
        const key = `lane ${event.lane}`
        const times = event.payloads
        conditions.raise({
          code: 'CHUNK_DAMAGED',
          key,
          severity: 'critical',
          times,
          ...advice.damaged(event),
        })
        return
      }
      case 'conservation_broken': {
        const key = `lane ${event.lane}`
        conditions.raise({
          code: 'CONSERVATION_BROKEN',
          key,
          severity: 'critical',
          ...advice.unbalanced(event),
        })
        return
      }
      case 'record_damaged': {
        // One entry of state has no condition of its own: there may be thousands.
        const key = event.table === 'state' ? 'state' : event.name
        conditions.raise({
          code: 'RECORD_DAMAGED',
          key,
          severity: 'critical',
          ...advice.damagedRecord(event),
        })
        return
      }
      case 'records_unbalanced': {
        const key = event.table === 'state' ? 'state' : event.name
        const text = advice.unbalancedRecords(event)
        conditions.raise({ code: 'RECORDS_UNBALANCED', key, severity: 'critical', ...text })
        return
      }
      default:
        assertNever(event)
    }
  }

  function applyBatch(
    event: Extract<
      GatewayEvent,
      {
        kind:
          | 'batch_stuck'
          | 'batch_unstuck'
          | 'batch_settled'
          | 'batch_split'
          | 'wrapper_refused'
          | 'answer_inconsistent'
      }
    >,
  ): void {
    const { provider } = event
    switch (event.kind) {
      case 'batch_stuck':
        conditions.raise({
          code: 'BATCH_STUCK',
          key: event.batchId,
          severity: 'warning',
          ...advice.stuck(event),
        })
        return
      case 'batch_unstuck':
      case 'batch_settled':
      case 'batch_split':
        conditions.clear('BATCH_STUCK', event.batchId)
        return
      case 'wrapper_refused':
        conditions.raise({
          code: 'WRAPPER_REFUSED',
          key: provider,
          severity: 'error',
          ...advice.wrapper(event),
        })
        return
      case 'answer_inconsistent': {
        const quietMs = hourMs
        conditions.raise({
          code: 'ANSWERS_INCONSISTENT',
          key: provider,
          severity: 'warning',
          quietMs,
          ...advice.odd(event),
        })
        return
      }
      default:
        assertNever(event)
    }
  }

  function reconcile({ dead, dropped, letters }: { dead: number; dropped: number; letters: number }): void {
    if (dead > deadRaised)
      raiseDeadLetters(
        dead - deadRaised,
        'The log names the reasons (message_unmappable, payload_dead_lettered).',
      )
    if (dropped > droppedRaised)
      raiseDropped(dropped - droppedRaised, 'The spool took nothing in when they came.')
    // All were requeued, mapped or deleted. The first ones may not be on the disk yet when they are told of.
    if (letters === 0 && lettersSeen > 0) conditions.clear('DEAD_LETTERS')
    lettersSeen = letters
  }

  function raiseDeadLetters(times: number, why: string): void {
    deadRaised += times
    const text = advice.deadLetters(deadRaised, why)
    conditions.raise({ code: 'DEAD_LETTERS', severity: 'error', times, ...text })
  }

  function raiseDropped(times: number, why: string): void {
    droppedRaised += times
    const text = advice.dropped(droppedRaised, why)
    conditions.raise({ code: 'MESSAGES_DROPPED', severity: 'error', times, quietMs: hourMs, ...text })
  }

  function clearHolds(): void {
    // A lost store is over when it is open again, which is an event of its own.
    for (const code of Object.values(holdCodes)) if (code !== 'STORE_LOST') conditions.clear(code)
  }
}

const holdCodes: Record<HoldReason, ConditionCode> = {
  spool_full: 'SPOOL_FULL',
  disk_low: 'DISK_LOW',
  quarantine_full: 'QUARANTINE_FULL',
  deferred_full: 'DEFERRED_FULL',
  state_full: 'STATE_FULL',
  store_lost: 'STORE_LOST',
}
