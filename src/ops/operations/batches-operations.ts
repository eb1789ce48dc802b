// batches-operations.ts: sealed batches that are not settled: listed, shown, and what an operator does with
// them.
//
// Those that make or delete something only report without `yes`. A selection is ids and reasons (each more
// than once), a provider, an age, or `all`. Many ids may stand in the body: ids-in-body.ts.

import { z } from 'zod'
import { isoTimes } from '../../std/iso-times.ts'
import type { BatchAction } from '../../delivery/types.ts'
import { heldReasons, type HeldReason } from '../../domain/held.ts'
import type { Caller } from '../types.ts'
import { batchSchema, batchesSchema } from '../http/answer-schemas/answer-schemas.ts'
import { batchActionSchema } from '../http/answer-schemas/control-schemas.ts'
import { badParameter, notFound, ok, starting, type JsonAnswer } from '../http/json-answer.ts'
import {
  age,
  choices,
  flag,
  integer,
  limit,
  requiredText,
  text,
  texts,
} from '../http/http-routing/parameters.ts'
import type { RouteRequest } from '../http/http-routing/route.ts'
import { quote } from '../../std/quote.ts'
import { actionText, batchesText, batchText } from './batch-text.ts'
import { operation, selectionRefused, type ControlAnswer, type Operation } from './operation.ts'

const partsMax = 100_000
const providersShownMax = 20

const filter = {
  provider: text('Only batches of this provider.', { value: 'name' }),
  reason: choices(
    'Only batches that are held for this reason. May be given more than once.',
    Object.keys(heldReasons) as HeldReason[],
    { value: 'reason' },
  ),
  olderThanMs: age(
    'Only batches that are held, or if not held were sealed, this long ago or longer.',
    'older-than',
  ),
}
const id = texts('The batch. May be given more than once.', { value: 'batchId', isArgument: true })
const which = { id, ...filter, all: flag('Selects all held batches.') }
const dryRun = flag('Only reports what would be done.')
const yes = flag('Does it. Without it, the answer reports what would be done.')

const skips = 'Exit status 1: a batch was skipped.'

/** What all actions have in common. */
const action = {
  effect: 'changes',
  idsInBody: true,
  means: 'What was done, or would be.',
  schema: batchActionSchema,
  refuses: (values: Selected['values']) => {
    const { all, id: ids, provider, reason, olderThanMs } = values
    return selectionRefused('batch', { all, id: ids, provider, reason, olderThanMs })
  },
  text: actionText,
  isDone: ({ skipped }: z.output<typeof batchActionSchema>) => skipped.length === 0,
} as const

export const batchOperations: readonly Operation[] = [
  operation({
    name: 'batches/list',
    path: '/batches',
    effect: 'lists',
    summary: 'List sealed batches that are not settled, held batches first.',
    notes: [
      'in flight: a submission runs. waiting: for its next try. held: because of the answers to it; the ' +
        'other batches are delivered as usual.',
    ],
    parameters: z.strictObject({
      id: texts('Only this batch. May be given more than once.', { value: 'batchId', isArgument: true }),
      ...filter,
      limit: limit('At most this many batches.'),
    }),
    means: 'The batches.',
    schema: batchesSchema,
    answer({ source, values: { limit: most, ...values } }) {
      const { batches } = source.stages
      if (!batches) return starting()
      const refused = providerRefused(values.provider, batches.providers)
      if (refused !== null) return refused
      const { more, ...list } = batches.list(selectionOf(values), most)
      return ok(
        isoTimes({ ...list, more: more > 0, moreBatches: more }, source.stages.ourTime?.correctionMs()),
      )
    },
    text: batchesText,
  }),
  operation({
    name: 'batches/show',
    effect: 'shows',
    summary: 'Show a batch: its payloads, and the last answers of the service.',
    notes: ['The answers are those since the start of the daemon.'],
    parameters: z.strictObject({
      id: requiredText('The batch; `batches list` shows its id.', { value: 'batchId', isArgument: true }),
    }),
    means: 'The batch.',
    schema: batchSchema,
    async answer({ source, values }) {
      const { batches } = source.stages
      if (!batches) return starting()
      const detail = await batches.show(values.id.toLowerCase())
      if (detail !== null) return ok(isoTimes(detail, source.stages.ourTime?.correctionMs()))
      const why = 'It was settled or replaced. `ledger --batch` shows what became of its payloads.'
      return notFound(`There is no sealed batch ${values.id}.`, why, 'Nothing was changed.')
    },
    text: batchText,
  }),
  operation({
    ...action,
    name: 'batches/retry',
    summary: 'Send batches again now: the same bytes under the same batchId.',
    notes: [
      'A retry has no second effect if the service recognizes the batchId. Many batches are sent one after ' +
        'the other. While the endpoint is not available, they wait for it.',
      skips,
    ],
    parameters: z.strictObject({ ...which, dryRun }),
    answer: (request) => run('retry', request, { isDryRun: request.values.dryRun }),
  }),
  operation({
    ...action,
    name: 'batches/reissue',
    summary: 'Send the payloads of batches again, each batch under a new batchId.',
    notes: [
      'If the service processed the batch, it processes its payloads twice: a new batchId is a new batch ' +
        'for it. Ask the service first.',
      skips,
    ],
    parameters: z.strictObject({ ...which, dryRun, yes }),
    answer: (request) => run('reissue', request, unlessConfirmed(request.values)),
  }),
  operation({
    ...action,
    name: 'batches/split',
    summary: 'Send the payloads of batches in smaller batches with new batchIds.',
    notes: [
      'Use it to separate a payload that the service refuses from the others. If the service processed ' +
        'the batch, it processes its payloads twice. Ask the service first.',
      skips,
    ],
    parameters: z.strictObject({
      ...which,
      parts: integer(
        'Number of batches to make of each. Without it, one for each payload.',
        { min: 2, max: partsMax },
        { value: 'number' },
      ),
      dryRun,
      yes,
    }),
    answer: (request) =>
      run('split', request, { ...unlessConfirmed(request.values), parts: request.values.parts ?? null }),
  }),
  operation({
    ...action,
    name: 'batches/mark-delivered',
    summary: 'Settle batches as delivered, without another submission.',
    notes: [
      'Use it when the service confirms that it processed the batch. If it did not, the payloads are lost. ' +
        'The ledger records who marked the batch.',
      skips,
    ],
    parameters: z.strictObject({ ...which, dryRun, yes }),
    answer: (request) => run('mark-delivered', request, unlessConfirmed(request.values)),
  }),
  operation({
    ...action,
    name: 'batches/drop',
    summary: 'Turn the payloads of batches into dead letters, or delete them.',
    notes: [
      'Each payload becomes a dead letter with the reason DROPPED_BY_OPERATOR. A requeue of all leaves ' +
        'these out: name the reason to send them.',
      skips,
    ],
    parameters: z.strictObject({
      ...which,
      discard: flag('Deletes the payloads instead. Their data is then lost.'),
      dryRun,
      yes,
    }),
    answer: (request) =>
      run(request.values.discard ? 'discard' : 'drop', request, unlessConfirmed(request.values)),
  }),
]

type Filter = {
  id: readonly string[]
  reason: readonly HeldReason[]
  provider?: string | undefined
  olderThanMs?: number | undefined
}

type Selected = RouteRequest<Filter & { all: boolean }>

function unlessConfirmed({ dryRun: dry, yes: confirmed }: { dryRun: boolean; yes: boolean }) {
  return { isDryRun: dry || !confirmed }
}

async function run(
  name: BatchAction,
  { source, values, caller, signal }: Selected,
  { isDryRun, parts = null }: { isDryRun: boolean; parts?: number | null },
): Promise<ControlAnswer> {
  const { batches } = source.stages
  if (!batches) return starting()
  const refused = providerRefused(values.provider, batches.providers)
  if (refused !== null) return refused
  const operator = operatorOf(caller)
  const request = { action: name, selection: selectionOf(values), parts, dryRun: isDryRun, operator }
  return ok(await batches.run(request, signal))
}

function selectionOf({ id: ids, reason: reasons, provider, olderThanMs }: Filter) {
  return {
    ...(ids.length > 0 && { ids }),
    ...(reasons.length > 0 && { reasons: [...reasons] }),
    ...(provider !== undefined && { provider }),
    ...(olderThanMs !== undefined && { olderThanMs }),
  }
}

export function providerRefused(name: string | undefined, providers: readonly string[]): JsonAnswer | null {
  if (name === undefined || providers.includes(name)) return null
  const allowed = providers.slice(0, providersShownMax)
  const more = providers.length - allowed.length
  const names = [...allowed.map((one) => quote(one, 64)), ...(more > 0 ? [`${more} more`] : [])].join(', ')
  return badParameter(
    `The provider ${quote(name, 64)} is not in the config of the daemon. Its providers: ${names}.`,
    { parameter: 'provider', found: name.slice(0, 200), allowed },
  )
}

function operatorOf(caller: Caller) {
  const user = caller.user ?? 'unknown'
  return caller.via === 'socket'
    ? { user, sudoUser: caller.sudoUser }
    : { user: `${user} at ${caller.address} over TCP`, sudoUser: null }
}
