import { describe, expect, test } from 'vitest'
import type { ProviderName } from '../../../src/domain/ids.ts'
import {
  createBatchOperations,
  type BatchControl,
} from '../../../src/delivery/batch-operations/batch-operations.ts'
import type { BatchRequest, BatchView, EndpointState } from '../../../src/delivery/types.ts'
import { GatewayError } from '../../../src/std/gateway-error.ts'
import { batchView, heldView } from '../../support/batch-views.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

const never = new AbortController().signal
const operator = { user: 'root', sudoUser: 'alice' }

type World = ReturnType<typeof openWorld>

/** A provider whose batches are only recorded. `failing`: what the next action on a batch throws. */
function openWorld(
  views: BatchView[],
  failing: Record<string, GatewayError> = {},
  endpoint: EndpointState = 'available',
) {
  const calls: string[] = []
  const call = async (id: string, text: string) => {
    if (failing[id] !== undefined) throw failing[id]
    calls.push(`${text} ${id}`)
  }
  const control: BatchControl = {
    provider: 'default' as ProviderName,
    views: () => views,
    async show(id) {
      const view = views.find(({ batchId }) => batchId === id)
      return view === undefined ? null : { ...view, contents: [], answers: [] }
    },
    retry: (id) => call(id, 'retry'),
    reissue: async () => 0,
    giveBack: async () => 0,
    settle: (id, { as, by }) => call(id, `${as} by ${by}`),
  }
  const clock = createFakeClock()
  const endpoints = () => [
    { name: 'default' as ProviderName, endpoint, nextAttemptAt: clock.now() + 60_000 },
    { name: 'north' as ProviderName, endpoint, nextAttemptAt: null },
  ]
  const operations = createBatchOperations({ clock, emit: () => undefined, controls: [control], endpoints })
  return { calls, operations }
}

function run({ operations }: World, changes: Partial<BatchRequest>) {
  const request: BatchRequest = {
    action: 'retry',
    selection: {},
    parts: null,
    dryRun: false,
    operator,
    ...changes,
  }
  return operations.run(request, never)
}

const three = () => [
  heldView('a', 'repeated', { since: 1 }),
  heldView('b', 'stuck', { since: 2, mayBeProcessed: false }),
  batchView('c', { state: 'in flight' }),
]

describe('an action on batches', () => {
  test('continues where a batch was sent or settled in between', async () => {
    const fault = (code: 'BATCH_BUSY' | 'BATCH_GONE') =>
      new GatewayError(code, { what: '', why: '', act: '' })
    const failing = { a: fault('BATCH_BUSY') }
    const world = openWorld(three(), failing)
    const report = await run(world, { action: 'mark-delivered' })
    expect(world.calls).toEqual(['delivered by root (sudo by alice) b'])
    expect(report).toMatchObject({ batches: 1, skipped: [{ batchId: 'a', code: 'BATCH_BUSY' }] })
  })

  test('says what is no batchId, and what is a batchId that no batch has', async () => {
    const ids = ['xyz', '00000000-0000-4000-8000-00000000000a']
    const { skipped } = await run(openWorld(three()), { action: 'drop', selection: { ids } })
    expect(skipped.map(({ code, why }) => `${code}: ${why}`)).toEqual([
      'USAGE: This is not a batchId. `batches list` shows the batchIds.',
      expect.stringMatching(/^BATCH_GONE: There is no such batch, or it does not match the filter\./),
    ])
  })

  test('reports the endpoint that retried batches wait for', async () => {
    for (const endpoint of ['unavailable', 'unauthorized'] as const) {
      const { waiting } = await run(openWorld(three(), {}, endpoint), {})
      expect(waiting).toEqual([{ provider: 'default', endpoint, nextAttemptInMs: 60_000 }])
    }
    expect((await run(openWorld(three()), {})).waiting).toEqual([])
    expect((await run(openWorld(three(), {}, 'unavailable'), { action: 'drop' })).waiting).toEqual([])
  })
})
