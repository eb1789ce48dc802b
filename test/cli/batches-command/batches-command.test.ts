import { userInfo } from 'node:os'
import { describe, expect, test } from 'vitest'
import type { BatchActionReport, BatchOperations, BatchRequest } from '../../../src/delivery/types.ts'
import { listBatches } from '../../../src/delivery/batch-operations/select-batches.ts'
import { batchView, heldView } from '../../support/batch-views.ts'
import { runCli } from '../../support/cli-world.ts'
import { opsWorld } from '../../support/ops-world.ts'

const a = '00000000-0000-4000-8000-00000000000a'
const b = '00000000-0000-4000-8000-00000000000b'
const now = 10_000_000

/** A daemon with two batches, whose actions are only recorded. */
async function daemon(changes: Partial<BatchActionReport> = {}) {
  const ops = opsWorld()
  const asked: BatchRequest[] = []
  const views = [
    heldView(a, 'repeated', { since: now - 3_600_000, sealedAt: now - 7_200_000, submissions: 3 }),
    batchView(b, { sealedAt: now - 5000, nextTryAt: now + 30_000, provider: 'north' }),
  ]
  const batches: BatchOperations = {
    providers: ['default', 'north'],
    list: (selection, limit) => listBatches(views, selection, { now, limit }),
    async show(batchId) {
      const view = views.find((each) => each.batchId === batchId)
      if (view === undefined) return null
      const contents = [{ payloadId: 'p-1', device: 'truck-7' }]
      return { ...view, contents, answers: [{ at: now, requestId: 'r-9', text: 'HTTP 409: known' }] }
    },
    async run(request) {
      asked.push(request)
      return {
        action: request.action,
        dryRun: request.dryRun,
        batches: 1,
        payloads: 10,
        newBatches: request.action === 'reissue' ? 1 : 0,
        mayBeProcessed: { batches: 1, payloads: 10 },
        waiting: [],
        skipped: [],
        ...changes,
      }
    },
  }
  await ops.ops.start()
  const fail = () => Promise.reject(new Error('not asked'))
  ops.ops.attach({
    control: {
      reload: fail,
      remap: fail,
      now: () => 0,
      mute: () => 0,
      accept: fail,
      snapshotsFolder: '/var/lib/gateway/snapshots',
      forget: fail,
      check: fail,
      probe: fail,
    },
    batches,
  })
  const run = (...argv: string[]) =>
    runCli(['batches', ...argv, '--url', ops.ops.control() ?? ''], { env: { SUDO_USER: 'alice' } })
  return { asked, run, [Symbol.asyncDispose]: () => ops[Symbol.asyncDispose]() }
}

describe('batches list', () => {
  test('shows each batch, sums by state and reason, and what each reason means', async () => {
    await using world = await daemon()
    const { stdout, status } = await world.run()
    expect(status).toBe(0)
    expect(stdout).toMatch(/^1 batch with 10 payloads held \(repeated\), provider default, oldest 1 h ago$/m)
    expect(stdout).toMatch(
      new RegExp(`^${a} +default +live +10 .* 2 h ago +held: repeated, 1 h ago +3 +request of`, 'm'),
    )
    expect(stdout).toMatch(new RegExp(`^${b} +north +live +10 .* 5 s ago +waiting +1 +- +in 30 s$`, 'm'))
    expect(stdout).toMatch(
      /^repeated: the service answered 409: .*`batches mark-delivered`; if not, `batches reissue`/m,
    )
  })

  test('is filtered, and printed as JSON', async () => {
    await using world = await daemon()
    const { stdout } = await world.run('list', '--provider', 'north', '--json')
    expect(JSON.parse(stdout)).toMatchObject({ batches: [{ batchId: b }], more: false, moreBatches: 0 })
    expect((await world.run('list', '--reason', 'stuck')).stdout).toBe('No sealed batch matches.\n')
    expect((await world.run('list', '--older-than', '1h', '--json')).stdout).toContain(a)
  })
})

describe('batches show', () => {
  test('has the payloads, the devices and the last answers', async () => {
    await using world = await daemon()
    const { stdout } = await world.run('show', a.toUpperCase())
    expect(stdout).toMatch(/^state +held since 1970-01-01 01:46:40 UTC$/m)
    expect(stdout).toMatch(/^ {2}1970-01-01 02:46:40 UTC +r-9 +HTTP 409: known$/m)
    expect(stdout).toMatch(/^ {2}p-1 +truck-7$/m)
    const missing = await world.run('show', 'none')
    expect([missing.status, missing.stderr]).toEqual([1, expect.stringContaining('no sealed batch')])
  })
})

describe('an action on batches', () => {
  const operator = { user: userInfo().username, sudoUser: 'alice' }

  test('names the operator, and changes nothing without --yes, except retry', async () => {
    await using world = await daemon()
    await world.run('retry', a, b)
    await world.run('reissue', '--reason', 'repeated')
    await world.run('reissue', '--all', '--yes')
    await world.run('split', a, '--parts', '3', '--yes')
    await world.run('mark-delivered', '--provider', 'north', '--older-than', '1h', '--yes')
    await world.run('drop', a, '--discard')
    await world.run('drop', a, '--yes', '--dry-run')
    const request = { parts: null, operator }
    expect(world.asked).toEqual([
      { ...request, action: 'retry', selection: { ids: [a, b] }, dryRun: false },
      { ...request, action: 'reissue', selection: { reasons: ['repeated'] }, dryRun: true },
      { ...request, action: 'reissue', selection: {}, dryRun: false },
      { ...request, action: 'split', selection: { ids: [a] }, parts: 3, dryRun: false },
      {
        ...request,
        action: 'mark-delivered',
        selection: { provider: 'north', olderThanMs: 3_600_000 },
        dryRun: false,
      },
      { ...request, action: 'discard', selection: { ids: [a] }, dryRun: true },
      { ...request, action: 'drop', selection: { ids: [a] }, dryRun: true },
    ])
  })

  test('says before what second effects it can have', async () => {
    await using world = await daemon()
    expect((await world.run('reissue', a)).stdout).toBe(
      `1 batch with 10 payloads would be sent under new batchIds (1 new batch).
  The service may have processed the batch. If it did, it processes 10 payloads twice, under two batchIds.
  Ask the service first: \`batches show\` has the batchId and the requestIds.
Nothing was changed. Add --yes to do it.
`,
    )
    expect((await world.run('mark-delivered', a)).stdout).toContain(
      '  If the service did not process it, its payloads are lost.\n',
    )
    expect((await world.run('drop', a)).stdout).toContain('--reason DROPPED_BY_OPERATOR')
    expect((await world.run('retry', a)).stdout).toBe(
      '1 batch with 10 payloads is retried under the same batchId.\n',
    )
  })

  test('takes batches held for any of several reasons', async () => {
    await using world = await daemon()
    await world.run('retry', '--reason', 'repeated', '--reason', 'stuck')
    expect(world.asked).toMatchObject([{ selection: { reasons: ['repeated', 'stuck'] } }])
  })

  test('refuses a provider that the daemon does not have, and names those it has', async () => {
    await using world = await daemon()
    for (const argv of [['reissue', '--yes'], ['list']]) {
      const { status, stderr } = await world.run(...argv, '--provider', 'nosuch')
      expect([status, stderr]).toEqual([2, expect.stringContaining('Its providers: "default", "north".')])
    }
    expect(world.asked).toEqual([])
  })

  test.each<[string, Partial<BatchActionReport>, string[], number, string]>([
    [
      'of how many of several batches the service may have processed payloads',
      { batches: 3, payloads: 30, mayBeProcessed: { batches: 2, payloads: 20 } },
      ['reissue', '--all'],
      0,
      'The service may have processed 2 of the 3 batches. If it did, it processes 20 payloads twice',
    ],
    [
      'of how many of several batches the payloads are lost',
      { batches: 3, payloads: 30, mayBeProcessed: { batches: 2, payloads: 20 } },
      ['mark-delivered', '--all'],
      0,
      'The service refused every submission of 1 of the 3 batches: 10 payloads are lost.',
    ],
    [
      'that the service processed none of the batches, where it refused every submission',
      { mayBeProcessed: { batches: 0, payloads: 0 } },
      ['split', a],
      0,
      'has processed nothing of it',
    ],
    [
      'that the payloads of such a batch are lost',
      { mayBeProcessed: { batches: 0, payloads: 0 } },
      ['mark-delivered', a],
      0,
      'The service refused every submission of the batch: 10 payloads are lost.',
    ],
    [
      'which batch is in a submission, or gone',
      {
        batches: 0,
        payloads: 0,
        skipped: [{ batchId: a, code: 'BATCH_BUSY', why: 'It is in a submission.' }],
      },
      ['drop', a, '--yes'],
      1,
      `  skipped: ${a}: BATCH_BUSY: It is in a submission.\n`,
    ],
    [
      'of a retry that it waits for the endpoint, and how long',
      { waiting: [{ provider: 'north', endpoint: 'unauthorized', nextAttemptInMs: 540_000 }] },
      ['retry', a],
      0,
      `1 batch with 10 payloads is queued for a retry under the same batchId.
  The endpoint of provider north is unauthorized. Its batches wait until a try succeeds. The next try is in 9 min; \`probe\` starts it now.
`,
    ],
  ])('says %s', async (_what, changes, words, ended, text) => {
    await using world = await daemon(changes)
    const { status, stdout } = await world.run(...words)
    expect([status, stdout]).toEqual([ended, expect.stringContaining(text)])
  })
})
