// condition-catalogue.ts: every condition with its severity, meaning and what to do. The codes are API.
//
//   spool-conditions.ts    those of the spool and its disk
//   delivery-conditions.ts those of endpoints, credentials and held batches
//   slow-delivery-conditions.ts  those of a delivery that stands still, or works and not well
//   client-conditions.ts   those of clients and their connections
//   device-conditions.ts   those of devices
//   gateway-conditions.ts  those of the gateway as a whole
//   message-source-conditions.ts  those of bridges
//
// A condition that is a state has its texts here: `cause`, of the facts of the state. The event that raises
// one of the others may replace `meaning` and `act` by more exact texts (domain/events). The documentation is
// generated from this table.

import { clientConditions } from './client-conditions.ts'
import { deliveryConditions } from './delivery-conditions.ts'
import { deviceConditions } from './device-conditions.ts'
import { gatewayConditions, selfConditions } from './gateway-conditions.ts'
import { sourceStateConditions } from './message-source-conditions.ts'
import { slowDeliveryConditions } from './slow-delivery-conditions.ts'
import { spoolConditions, spoolStateConditions } from './spool-conditions.ts'
import type { ConditionSpec } from './types.ts'

const hourMs = 3_600_000
const dayMs = 86_400_000

export const conditionCatalogue = {
  ...deliveryConditions,
  ...slowDeliveryConditions,

  // dead letters and what is lost
  DEAD_LETTERS: {
    severity: 'error',
    meaning:
      'Messages or payloads became dead letters since the start of the gateway, and some are not ' +
      'requeued yet.',
    act:
      'Run `dead-letters list` to see the causes. Correct the cause, then requeue. Dead letters are ' +
      'kept whole.',
  },
  DEAD_LETTERS_WAITING: {
    severity: 'warning',
    meaning: 'Dead letters from before the start of the gateway wait for a decision.',
    continues: 'DEAD_LETTERS',
    act: 'Run `dead-letters list` to see the causes. Correct the cause and requeue, or purge them.',
  },
  DEAD_LETTERS_PURGED: {
    severity: 'error',
    meaning: 'Dead letters were deleted, by a command or by age. Their data is lost.',
    act:
      'Nothing if this was intended. `audit` shows who purged dead letters by a command. By age it is ' +
      'spool.dead_letters.retention: raise or remove it.',
    quietMs: dayMs,
  },
  MESSAGES_EVICTED: {
    severity: 'error',
    meaning:
      'A store of kept messages reached its limit, and its on_full is `drop_oldest`: the oldest messages of ' +
      'the device or client with the most were dropped. Their data is lost.',
    act:
      'See the largest shares in the condition, and `quarantine list` or `dead-letters list`. List the devices, ' +
      'refuse the clients, correct the cause, or raise the limit (section spool).',
    quietMs: hourMs,
  },
  MESSAGES_DROPPED: {
    severity: 'error',
    meaning: 'QoS 0 messages were dropped. Their data is lost.',
    act:
      'Configure the devices to publish with QoS 1. They then keep messages until the gateway ' +
      'acknowledges them.',
    quietMs: hourMs,
  },

  ...spoolConditions,
  ...spoolStateConditions,

  // ingest and mapping
  ...clientConditions,
  ...sourceStateConditions,
  ...deviceConditions,
  ...gatewayConditions,
  ...selfConditions,
  CLOCK_STEPPED: {
    severity: 'warning',
    meaning:
      'The clock of this machine was set while the gateway ran. Messages that were quarantined because it ' +
      'was behind are released automatically.',
    act: 'Find out why the clock was wrong. Let one program synchronise it (timedatectl, chrony).',
    quietMs: hourMs,
  },

  // ledger: nothing is late or lost by these
  LEDGER_SET_ASIDE: {
    severity: 'warning',
    meaning:
      'Records of the ledger are damaged. Their payloads are missing from the ledger. Delivery is not ' +
      'affected.',
    act: 'Check the disk and the memory of this machine.',
    quietMs: dayMs,
  },
} as const satisfies Record<string, ConditionSpec>

export type ConditionCode = keyof typeof conditionCatalogue

export function specOf(code: ConditionCode): ConditionSpec {
  return conditionCatalogue[code]
}
