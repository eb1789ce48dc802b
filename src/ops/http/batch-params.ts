// batch-params.ts: a selection of batches as parameters of a request, for both sides:
// `provider=acme&reason=repeated&olderThanMs=3600000`, or `id=`. `id` and `reason` may stand more than once.

import { quote } from '../../std/quote.ts'
import { heldReasons, type HeldReason } from '../../domain/held.ts'
import type { BatchSelection } from '../../delivery/types.ts'
import { badParameter, type JsonAnswer } from './json-answer.ts'
import { choices, integer, text, texts } from './http-routing/parameters.ts'

const providersShownMax = 20

export const batchParameters = {
  id: texts('Only this batch. May be given more than once.'),
  reason: choices(
    'Only batches that are held for this reason. May be given more than once.',
    Object.keys(heldReasons) as HeldReason[],
  ),
  provider: text('Only of this provider.'),
  olderThanMs: integer('Only batches that were sealed longer ago.', { min: 0, max: 999_999_999_999_999 }),
}

type Values = {
  id: readonly string[]
  reason: readonly HeldReason[]
  provider?: string | undefined
  olderThanMs?: number | undefined
}

/**
 * The selection, or a refusal where there is no such provider. `providers`: all that exist; null while they
 * are not known.
 */
export function batchSelectionOf(
  { id, reason, provider, olderThanMs }: Values,
  providers: readonly string[] | null,
): { kind: 'selection'; selection: BatchSelection } | { kind: 'refused'; answer: JsonAnswer } {
  if (provider !== undefined && providers?.includes(provider) === false)
    return { kind: 'refused', answer: unknownProvider(provider, providers) }
  const selection: BatchSelection = {}
  if (id.length > 0) selection.ids = id
  if (reason.length > 0) selection.reasons = [...reason]
  if (provider !== undefined) selection.provider = provider
  if (olderThanMs !== undefined) selection.olderThanMs = olderThanMs
  return { kind: 'selection', selection }
}

export function unknownProvider(name: string, providers: readonly string[]): JsonAnswer {
  const allowed = providers.slice(0, providersShownMax)
  const more = providers.length - allowed.length
  const names = [...allowed.map((one) => quote(one, 64)), ...(more > 0 ? [`${more} more`] : [])].join(', ')
  return badParameter(
    `The provider ${quote(name, 64)} is not in the config of the daemon. Its providers: ${names}.`,
    { parameter: 'provider', found: name.slice(0, 200), allowed },
  )
}

export function toBatchParams({ ids = [], reasons = [], ...selection }: BatchSelection): URLSearchParams {
  const params = new URLSearchParams()
  for (const id of ids) params.append('id', id)
  for (const reason of reasons) params.append('reason', reason)
  for (const [key, value] of Object.entries(selection)) params.set(key, String(value))
  return params
}
