// batch-operations.ts: what an operator does with sealed batches that are not settled. Entry file of this
// folder.
//
//   retry           the same bytes under the same batchId, now; many go one after the other
//   reissue, split  the same payloads under new batchIds. If the service processed the batch, it processes
//                   the payloads twice
//   mark-delivered  settled as delivered, without another submission
//   drop            each payload becomes a dead letter; `discard` deletes them
//
// A selection by provider, reason or age takes held batches only. A batchId takes a batch in any state,
// except one that is in a submission now (BATCH_BUSY): its answer may come at any moment. The batches go one
// after the other, each in one durable write, so an interruption leaves whole batches. Each request that
// changes something is one event `operator_action`, also if it fails in the middle.
//
//   select-batches.ts    which batches a selection takes, and how a list shows them
//   ../provider-pipeline/batch-control.ts   acts on the batches of one provider

import { assertNever } from '../../std/assert.ts'
import type { Clock } from '../../std/clock.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import type { Emit } from '../../domain/event.ts'
import type { BatchId, ProviderName } from '../../domain/ids.ts'
import type {
  BatchActionReport,
  BatchDetail,
  BatchOperations,
  BatchRequest,
  BatchView,
  Operator,
  ProviderView,
  WaitingEndpoint,
} from '../types.ts'
import type { ReturnedPayload } from '../returns/types.ts'
import { describeSelection, listBatches, selectBatches } from './select-batches.ts'

/** The batches of one provider. */
export type BatchControl = {
  readonly provider: ProviderName
  views(): Iterable<BatchView>
  /** Null where the provider has no batch with this id. */
  show(batchId: string): Promise<BatchDetail | null>
  /** Each rejects with BATCH_BUSY or BATCH_GONE, or as the spool does. */
  retry(batchId: BatchId): Promise<void>
  /** Resolves with the number of new batches; damage in the spool can change it. */
  reissue(batchId: BatchId, counts: readonly number[]): Promise<number>
  settle(batchId: BatchId, as: OperatorSettlement): Promise<void>
  /**
   * Removes a batch when `hand` has resolved (../returns/returns.ts). Resolves with its payloads; 0 where the
   * service may have processed it.
   */
  giveBack(batchId: BatchId, hand: Hand): Promise<number>
}

/** Stores payloads elsewhere. */
export type Hand = (payloads: readonly ReturnedPayload[]) => Promise<void>

/** `by`: who, for the ledger and the dead letters. */
export type OperatorSettlement = { as: 'delivered' | 'dead' | 'discarded'; by: string }

type Deps = {
  clock: Clock
  emit: Emit
  controls: readonly BatchControl[]
  endpoints: () => readonly EndpointView[]
}

/** Whether a provider's batches can be sent now. */
type EndpointView = Pick<ProviderView, 'name' | 'endpoint' | 'nextAttemptAt'>

export function createBatchOperations({ clock, emit, controls, endpoints }: Deps): BatchOperations {
  return {
    providers: controls.map(({ provider }) => provider),
    list: (selection, limit) => listBatches(allViews(), selection, { now: clock.now(), limit }),
    async show(batchId) {
      for (const control of controls) {
        const found = await control.show(batchId)
        if (found !== null) return found
      }
      return null
    },
    run,
  }

  function* allViews(): Generator<BatchView> {
    for (const control of controls) yield* control.views()
  }

  async function run(request: BatchRequest, signal: AbortSignal): Promise<BatchActionReport> {
    const { action, selection, dryRun, operator } = request
    const counts = { batches: 0, payloads: 0, newBatches: 0 }
    const mayBeProcessed = { batches: 0, payloads: 0 }
    const retried = new Set<string>()
    const { selected, missing } = selectBatches(allViews(), selection, clock.now())
    const skipped: BatchActionReport['skipped'][number][] = missing.map(missed)
    try {
      for (const view of selected) {
        if (signal.aborted) break
        const refusal = await act(request, view)
        if (typeof refusal !== 'number') {
          skipped.push(refusal)
          continue
        }
        counts.batches += 1
        counts.payloads += view.payloads
        if (action === 'retry') retried.add(view.provider)
        counts.newBatches += refusal
        if (!view.mayBeProcessed) continue
        mayBeProcessed.batches += 1
        mayBeProcessed.payloads += view.payloads
      }
    } finally {
      if (!dryRun)
        emit({
          kind: 'operator_action',
          action,
          by: operatorText(operator),
          selection: describeSelection(selection),
          ...counts,
          skipped: skipped.length,
        })
    }
    return { action, dryRun, ...counts, mayBeProcessed, waiting: waitingOf(retried), skipped }
  }

  function waitingOf(providers: ReadonlySet<string>): WaitingEndpoint[] {
    return endpoints().flatMap(({ name, endpoint, nextAttemptAt }) =>
      endpoint === 'available' || !providers.has(name)
        ? []
        : [{ provider: name, endpoint, nextAttemptInMs: Math.max(0, (nextAttemptAt ?? 0) - clock.now()) }],
    )
  }

  /** The number of new batches, or why the batch stays as it is. */
  async function act(
    { action, parts, dryRun, operator }: BatchRequest,
    view: BatchView,
  ): Promise<number | BatchActionReport['skipped'][number]> {
    const { batchId, provider, payloads } = view
    const control = controls.find((each) => each.provider === provider)
    if (control === undefined) return gone(batchId)
    if (view.state === 'in flight') return busy(batchId)
    const by = operatorText(operator)
    const sizes = action === 'split' ? partsOf(payloads, parts ?? payloads) : [payloads]
    const makesBatches = action === 'reissue' || action === 'split'
    if (dryRun) return makesBatches ? sizes.length : 0
    try {
      switch (action) {
        case 'retry':
          await control.retry(batchId)
          return 0
        case 'reissue':
        case 'split':
          return await control.reissue(batchId, sizes)
        case 'mark-delivered':
          await control.settle(batchId, { as: 'delivered', by })
          return 0
        case 'drop':
          await control.settle(batchId, { as: 'dead', by })
          return 0
        case 'discard':
          await control.settle(batchId, { as: 'discarded', by })
          emit({ kind: 'payloads_discarded', provider, batchId, payloads, by })
          return 0
        default:
          return assertNever(action)
      }
    } catch (error) {
      const code = error instanceof GatewayError ? error.code : null
      if (code === 'BATCH_BUSY') return busy(batchId)
      if (code === 'BATCH_GONE') return gone(batchId)
      throw error
    }
  }
}

/** An id of the command line that selects no batch. */
function missed(batchId: string) {
  if (isBatchId(batchId)) return gone(batchId)
  const why = 'This is not a batchId. `batches list` shows the batchIds.'
  return { batchId, code: 'USAGE', why } as const
}

function isBatchId(text: string): boolean {
  return /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(text)
}

function gone(batchId: string) {
  const why =
    'There is no such batch, or it does not match the filter. Perhaps it was settled or replaced: ' +
    '`ledger --batch` shows what became of its payloads.'
  return { batchId, code: 'BATCH_GONE', why } as const
}

function busy(batchId: string) {
  const why = 'The batch is in a submission now. Try again after its answer.'
  return { batchId, code: 'BATCH_BUSY', why } as const
}

/** `payloads` in equal parts; the first ones take the rest. */
export function partsOf(payloads: number, parts: number): number[] {
  const count = Math.min(parts, payloads)
  const least = Math.floor(payloads / count)
  const rest = payloads % count
  return Array.from({ length: count }, (_, index) => least + (index < rest ? 1 : 0))
}

function operatorText({ user, sudoUser }: Operator): string {
  return sudoUser === null ? user : `${user} (sudo by ${sudoUser})`
}
