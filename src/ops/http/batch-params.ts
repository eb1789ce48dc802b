// batch-params.ts: a selection of batches as parameters of a request, for both sides:
// `provider=acme&reason=repeated&olderThanMs=3600000`, or `id=` more than once.

import { quote } from '../../std/quote.ts'
import { heldReasons, type HeldReason } from '../../domain/held.ts'
import type { BatchSelection } from '../../delivery/types.ts'

/** The selection, or what is wrong with the parameters. Those named in `others` are skipped. */
export function readBatchParams(params: URLSearchParams, others: readonly string[]): BatchSelection | string {
  const selection: BatchSelection = {}
  const ids = params.getAll('id')
  if (ids.length > 0) selection.ids = ids
  for (const [key, value] of params) {
    if (key === 'id' || others.includes(key)) continue
    if (key === 'provider') selection.provider = value
    else if (key === 'reason' && Object.hasOwn(heldReasons, value)) selection.reason = value as HeldReason
    else if (key === 'olderThanMs' && /^\d{1,15}$/.test(value)) selection.olderThanMs = Number(value)
    else return `Unknown parameter or value: ${quote(key, 40)} with ${quote(value, 60)}.`
  }
  return selection
}

export function toBatchParams({ ids = [], ...selection }: BatchSelection): URLSearchParams {
  const params = new URLSearchParams()
  for (const id of ids) params.append('id', id)
  for (const [key, value] of Object.entries(selection)) params.set(key, String(value))
  return params
}
