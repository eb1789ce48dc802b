// control-batches.ts: what an operator does with sealed batches, over HTTP. Who may: control-routes.ts.
//
//   POST /control/batches/show?id=
//   POST /control/batches/retry?WHICH&dryRun=1
//   POST /control/batches/reissue?WHICH&yes=1
//   POST /control/batches/split?WHICH&parts=N&yes=1     without parts: a new batch for each payload
//   POST /control/batches/mark-delivered?WHICH&yes=1
//   POST /control/batches/drop?WHICH&discard=1&yes=1
//
// WHICH is id and reason (each more than once), provider, olderThanMs, or `all=1`. Without `yes` they report
// what they would do.

import type { BatchAction, BatchOperations } from '../../delivery/types.ts'
import type { Caller } from '../types.ts'
import { readBatchParams } from './batch-params.ts'
import { badRequest, ok, problem, type JsonAnswer } from './json-answer.ts'

const flags = ['all', 'dryRun', 'yes', 'discard', 'parts']
const act = 'Nothing was changed.'
const partsMax = 100_000

/** Null where there is nothing of this name. */
export async function changeBatches(
  batches: BatchOperations,
  name: string,
  { params, caller }: { params: URLSearchParams; caller: Caller },
  signal: AbortSignal,
): Promise<JsonAnswer | null> {
  if (name === 'show') {
    const id = params.get('id') ?? ''
    const detail = await batches.show(id)
    if (detail !== null) return ok(detail)
    const why = 'It was settled or replaced. `ledger --batch` shows what became of its payloads.'
    return problem(404, { what: `There is no sealed batch ${id}.`, why, act })
  }
  const action = actionIn(name, params)
  if (action === null) return null
  const selection = readBatchParams(params, { others: flags, providers: batches.providers })
  if (typeof selection === 'string') return badRequest(selection, act)
  if (Object.keys(selection).length === 0 && params.get('all') !== '1')
    return badRequest('The request selects no batches. all=1 selects all held batches.', act)
  const parts = partsIn(params)
  if (typeof parts === 'string') return badRequest(parts, act)
  const dryRun = params.get('dryRun') === '1' || (action !== 'retry' && params.get('yes') !== '1')
  const request = { action, selection, parts, dryRun, operator: operatorOf(caller) }
  return ok(await batches.run(request, signal))
}

function operatorOf(caller: Caller) {
  const user = caller.user ?? 'unknown'
  return caller.via === 'socket'
    ? { user, sudoUser: caller.sudoUser }
    : { user: `${user} at ${caller.address} over TCP`, sudoUser: null }
}

function actionIn(name: string, params: URLSearchParams): BatchAction | null {
  switch (name) {
    case 'retry':
    case 'reissue':
    case 'split':
    case 'mark-delivered':
      return name
    case 'drop':
      return params.get('discard') === '1' ? 'discard' : 'drop'
    default:
      return null
  }
}

/** Null: a batch for each payload. */
function partsIn(params: URLSearchParams): number | null | string {
  const text = params.get('parts')
  if (text === null) return null
  const parts = /^\d{1,6}$/.test(text) ? Number(text) : 0
  return parts >= 2 && parts <= partsMax ? parts : `parts must be a whole number from 2 to ${partsMax}.`
}
