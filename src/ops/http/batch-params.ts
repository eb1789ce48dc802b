// batch-params.ts: a selection of batches as parameters of a request, for both sides:
// `provider=acme&reason=repeated&olderThanMs=3600000`, or `id=`. `id` and `reason` may stand more than once.

import { quote } from '../../std/quote.ts'
import { heldReasons, type HeldReason } from '../../domain/held.ts'
import type { BatchSelection } from '../../delivery/types.ts'

const providersShownMax = 20

/**
 * The selection, or what is wrong with the parameters. Those named in `others` are skipped. `providers`: all
 * that exist; null while they are not known.
 */
export function readBatchParams(
  params: URLSearchParams,
  { others, providers }: { others: readonly string[]; providers: readonly string[] | null },
): BatchSelection | string {
  const selection: BatchSelection = {}
  const ids = params.getAll('id')
  if (ids.length > 0) selection.ids = ids
  for (const key of ['provider', 'olderThanMs'])
    if (params.getAll(key).length > 1) return `${key} is given more than once.`
  for (const [key, value] of params) {
    if (key === 'id' || others.includes(key)) continue
    if (key === 'provider') {
      if (providers?.includes(value) === false) return unknownProvider(value, providers)
      selection.provider = value
    } else if (key === 'reason' && Object.hasOwn(heldReasons, value))
      selection.reasons = [...(selection.reasons ?? []), value as HeldReason]
    else if (key === 'olderThanMs' && /^\d{1,15}$/.test(value)) selection.olderThanMs = Number(value)
    else return `Unknown parameter or value: ${quote(key, 40)} with ${quote(value, 60)}.`
  }
  return selection
}

function unknownProvider(name: string, providers: readonly string[]): string {
  const shown = providers.slice(0, providersShownMax).map((provider) => quote(provider, 64))
  const more = providers.length - shown.length
  const names = [...shown, ...(more > 0 ? [`${more} more`] : [])].join(', ')
  return `The provider ${quote(name, 64)} is not in the config of the daemon. Its providers: ${names}.`
}

export function toBatchParams({ ids = [], reasons = [], ...selection }: BatchSelection): URLSearchParams {
  const params = new URLSearchParams()
  for (const id of ids) params.append('id', id)
  for (const reason of reasons) params.append('reason', reason)
  for (const [key, value] of Object.entries(selection)) params.set(key, String(value))
  return params
}
