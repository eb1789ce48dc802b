// `spool snapshot`, `spool restore` and `spool assign-lane` as a technician uses them.

import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readAudit } from '../../../src/ops/ops.ts'
import { runCli } from '../../support/cli-world.ts'
import { newFolder } from '../../support/folders.ts'
import { openSpoolWorld } from '../../support/open-spool.ts'
import { startPipeline } from '../../support/pipeline-world.ts'

describe('spool snapshot', () => {
  test('copies the spool of the running daemon, and restore makes a spool of the copy', async () => {
    const { gateway } = await startPipeline()
    const url = gateway.addresses.control
    const to = join(await newFolder(), 'snapshot')
    const { status, stdout } = await runCli(['spool', 'snapshot', '--to', to, '--url', url])
    expect(status).toBe(0)
    expect(stdout).toContain(`is in ${to}. Every block of it was read.`)
    const path = join(await newFolder(), 'spool')
    const restored = await runCli(['spool', 'restore', '--from', to, '--path', path])
    expect(restored.status).toBe(0)
    expect(restored.stdout).toContain(`The spool at ${path} is restored from ${to}.`)
    expect((await runCli(['spool', 'verify', '--path', path])).status).toBe(0)
    const full = await runCli(['spool', 'snapshot', '--to', to, '--url', url])
    expect(full.status).toBe(1)
    expect(full.stderr).toContain('The directory is not empty.')
  })

  test('and restore are in the audit log of the spool, also without a daemon', async () => {
    const world = await openSpoolWorld()
    await world.publish('a')
    await world.spool.close()
    const changesOf = async (path: string) =>
      (await readAudit(path, { limit: 10 })).changes.map(({ change, outcome }) => `${change} ${outcome}`)
    const to = join(await newFolder(), 'snapshot')
    await runCli(['spool', 'snapshot', '--to', to, '--path', world.path])
    expect(await changesOf(world.path)).toEqual(['spool/snapshot done'])
    const fresh = join(await newFolder(), 'spool')
    await runCli(['spool', 'restore', '--from', to, '--path', fresh])
    expect(await changesOf(fresh)).toEqual(['spool/restore done'])
    // A plan only.
    await runCli(['spool', 'restore', '--from', to, '--path', fresh])
    expect(await changesOf(fresh)).toHaveLength(1)
    await runCli(['spool', 'restore', '--from', to, '--path', fresh, '--yes'])
    expect(await changesOf(fresh)).toEqual(['spool/restore done', 'spool/restore done'])
    await runCli(['dead-letters', 'export', '--path', fresh])
    expect(await changesOf(fresh)).toContain('dead-letters/export done')
  })

  test('copies a spool that nothing uses, and says what a restore sends again', async () => {
    const world = await openSpoolWorld()
    for (const name of ['a', 'b', 'c']) await world.publish(name)
    const [lane] = world.spool.lanes()
    const batch = await world.spool.seal(lane!.id, { payloadsMax: 2, bodyBytesMax: 1e6 })
    await world.spool.close()
    const to = join(await newFolder(), 'snapshot')
    expect((await runCli(['spool', 'snapshot', '--to', to, '--path', world.path])).status).toBe(0)
    const refused = await runCli(['spool', 'restore', '--from', to, '--path', world.path])
    expect(refused.status).toBe(1)
    expect(refused.stdout).toMatch(
      /^Nothing was changed|There is a spool at .* already\. Nothing was changed\.$/m,
    )
    const { status, stdout } = await runCli(['spool', 'restore', '--from', to, '--path', world.path, '--yes'])
    expect(status).toBe(0)
    expect(stdout).toContain('The snapshot holds 3 payloads, 0 dead letters and 0 kept messages.')
    expect(stdout).toContain(`  batch ${batch?.batchId}: 2 payloads`)
    expect(stdout).toContain('The spool that was there is in ')
  })
})

describe('spool assign-lane', () => {
  test('refuses a lane that has a provider, and a provider that is not in the config', async () => {
    const { gateway } = await startPipeline()
    const url = gateway.addresses.control
    const argv = ['spool', 'assign-lane', '--lane', '7', '--url', url]
    const known = await runCli([...argv, '--provider', 'default'])
    expect(known.status).toBe(1)
    expect(known.stderr).toContain('There is no such lane.')
    const wrong = await runCli([...argv, '--provider', 'nobody'])
    expect(wrong.status).toBe(2)
    expect(wrong.stderr).toContain('is not in the config of the daemon')
  })
})
