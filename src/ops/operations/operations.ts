// operations.ts: the register of operations: all that people and programs can ask of the running daemon, but
// for its state (../http/read-routes.ts). Entry file of this folder; each `*-operations.ts` has the rows of
// one part of the gateway, and `*-text.ts` their longer answers for a person.
//
// operation.ts says what a row has, and what is made of it. In the order of the help of the commands.

import { alertOperations } from './alert-operations.ts'
import { batchOperations } from './batches-operations.ts'
import { conditionOperations } from './condition-operations.ts'
import { deadLetterOperations } from './dead-letter-operations.ts'
import { deviceOperations } from './device-operations.ts'
import { gatewayOperations } from './gateway-operations.ts'
import { ledgerOperation } from './ledger-operation.ts'
import type { Operation } from './operation.ts'
import { quarantineOperations } from './quarantine-operations.ts'
import { spoolOperations } from './spool-operations.ts'

export const operations: readonly Operation[] = [
  ...gatewayOperations,
  ...deadLetterOperations,
  ...deviceOperations,
  ...quarantineOperations,
  ...batchOperations,
  ...spoolOperations,
  ...alertOperations,
  ...conditionOperations,
  ledgerOperation,
]

export function operationNamed(name: string): Operation {
  const found = operations.find((one) => one.name === name)
  if (found === undefined) throw new Error(`there is no operation ${name}`)
  return found
}
