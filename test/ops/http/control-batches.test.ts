import { describe, expect, test } from 'vitest'
import type { BatchOperations } from '../../../src/delivery/types.ts'
import { batchView } from '../../support/batch-views.ts'
import { get, opsWorld } from '../../support/ops-world.ts'

const id = '00000000-0000-4000-8000-000000000001'

const report = {
  dryRun: false,
  batches: 1,
  payloads: 2,
  newBatches: 0,
  mayBeProcessed: { batches: 1, payloads: 2 },
  waiting: [],
  skipped: [],
}

async function world() {
  const ops = opsWorld()
  const asked: unknown[] = []
  const batches: BatchOperations = {
    providers: ['x'],
    list(selection, limit) {
      asked.push(['list', selection, limit])
      return { now: 0, groups: [], batches: [batchView(id)], more: 0 }
    },
    async show(batchId) {
      return batchId === id ? { ...batchView(id), contents: [], answers: [] } : null
    },
    async run(request) {
      asked.push(request)
      return { ...report, action: request.action }
    },
  }
  await ops.ops.start()
  const fail = () => Promise.reject(new Error('not asked'))
  ops.ops.attach({
    control: {
      reload: fail,
      remap: fail,
      mute: () => 0,
      snapshotsFolder: '/var/lib/gateway/snapshots',
      forget: fail,
      check: fail,
      probe: fail,
    },
    batches,
  })
  const post = (query: string, headers: Record<string, string> = {}) =>
    get(ops.ops.control(), `/control/batches/${query}`, { method: 'POST', headers })
  const list = (query: string) => get(ops.ops.url(), `/batches?${query}`)
  const overTcp = (query: string) => get(ops.ops.url(), `/control/batches/${query}`, { method: 'POST' })
  return { asked, post, overTcp, list, [Symbol.asyncDispose]: () => ops[Symbol.asyncDispose]() }
}

const nobody = { user: 'unknown', sudoUser: null }

describe('actions on batches over HTTP', () => {
  test('name the batches, the operator, and whether they change anything', async () => {
    await using ops = await world()
    await ops.post(`retry?id=${id}&id=b`, { 'gateway-user': 'root', 'gateway-sudo-user': 'alice' })
    await ops.post('retry?all=1&dryRun=1')
    await ops.post('reissue?reason=repeated')
    await ops.post('split?provider=x&olderThanMs=5000&parts=3&yes=1')
    await ops.post('mark-delivered?all=1&yes=1')
    await ops.post('drop?all=1&yes=1&dryRun=1')
    await ops.post('drop?all=1&discard=1&yes=1')
    const request = { parts: null, operator: nobody }
    expect(ops.asked).toEqual([
      {
        ...request,
        action: 'retry',
        selection: { ids: [id, 'b'] },
        dryRun: false,
        operator: { user: 'root', sudoUser: 'alice' },
      },
      { ...request, action: 'retry', selection: {}, dryRun: true },
      { ...request, action: 'reissue', selection: { reasons: ['repeated'] }, dryRun: true },
      {
        ...request,
        action: 'split',
        selection: { provider: 'x', olderThanMs: 5000 },
        parts: 3,
        dryRun: false,
      },
      { ...request, action: 'mark-delivered', selection: {}, dryRun: false },
      { ...request, action: 'drop', selection: {}, dryRun: true },
      { ...request, action: 'discard', selection: {}, dryRun: false },
    ])
  })

  test('are not carried out for an invalid request, nor over TCP', async () => {
    await using ops = await world()
    const wrong = [
      'retry',
      'retry?provider=nosuch',
      'retry?provider=x&provider=x',
      'drop?yes=1',
      'retry?reason=other',
      'split?all=1&parts=1',
      'retry?colour=red',
    ]
    for (const query of wrong) expect((await ops.post(query)).status, query).toBe(400)
    expect((await ops.post('burn?all=1')).status).toBe(404)
    expect((await ops.overTcp('drop?all=1&yes=1')).status).toBe(403)
    expect(ops.asked).toEqual([])
  })
})

describe('batches over HTTP', () => {
  test('are listed by provider, reason and age', async () => {
    await using ops = await world()
    const { text } = await ops.list('provider=x&reason=stuck&olderThanMs=60&limit=7')
    expect(JSON.parse(text)).toMatchObject({ batches: [{ batchId: id }] })
    expect(ops.asked).toEqual([['list', { provider: 'x', reasons: ['stuck'], olderThanMs: 60 }, 7]])
    expect((await ops.list('reason=other')).status).toBe(400)
  })

  test('are shown whole, by their id', async () => {
    await using ops = await world()
    expect(JSON.parse((await ops.post(`show?id=${id}`)).text)).toMatchObject({ batchId: id, contents: [] })
    const missing = await ops.post('show?id=none')
    expect([missing.status, missing.text]).toEqual([404, expect.stringContaining('ledger --batch')])
  })
})
