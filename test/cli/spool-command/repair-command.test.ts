// `spool repair` as a technician uses it on the spool of a stopped daemon.

import { chown, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readAudit } from '../../../src/ops/ops.ts'
import { runCli } from '../../support/cli-world.ts'
import { newFolder } from '../../support/folders.ts'
import { openSpoolWorld } from '../../support/open-spool.ts'

async function spoolWithPayloads(): Promise<string> {
  const { spool, publish, path } = await openSpoolWorld()
  for (let n = 0; n < 5; n += 1) await publish(`truck ${n}`)
  await spool.close()
  return path
}

async function spoolWithoutCurrent(): Promise<string> {
  const path = await spoolWithPayloads()
  await rm(join(path, 'store/CURRENT'))
  return path
}

describe('spool repair', () => {
  test('shows what is damaged and what is kept, and changes nothing without --yes', async () => {
    const path = await spoolWithoutCurrent()
    const { status, stdout } = await runCli(['spool', 'repair', '--path', path])
    expect(status).toBe(1)
    expect(stdout).toContain('CURRENT cannot be read: the file is missing.')
    expect(stdout).toContain('No payload is lost.')
    expect(stdout).toMatch(/^Nothing was changed\. Repeat the command with --yes to repair\.$/m)
    expect(await readdir(join(path, 'store'))).not.toContain('CURRENT')
  })

  test('repairs with --yes, and the gateway opens the spool with everything in it', async () => {
    const path = await spoolWithoutCurrent()
    const backup = join(await newFolder(), 'copy')
    const argv = ['spool', 'repair', '--path', path, '--yes', '--backup', backup]
    const { status, stdout } = await runCli(argv)
    expect(status).toBe(0)
    expect(stdout).toContain(`The spool is repaired.\nThe damaged files are in ${join(path, 'damaged')}`)
    expect(stdout).toContain(`A copy of the store is in ${backup}.`)
    const { spool } = await openSpoolWorld({ path })
    expect(spool.lanes()).toMatchObject([{ pending: 5 }])
  })

  test('says that the gateway counts what is lost, and until then verify ends with 1', async () => {
    const path = await spoolWithPayloads()
    const store = join(path, 'store')
    const log = (await readdir(store)).find((name) => name.endsWith('.log'))!
    const bytes = await readFile(join(store, log))
    await writeFile(join(store, log), bytes.fill(0xff, bytes.length / 2, bytes.length / 2 + 64))
    const { stdout } = await runCli(['spool', 'repair', '--path', path, '--yes'])
    expect(stdout).toMatch(
      /^The gateway counts what is lost when it comes to it\. Until then `spool verify` ends with 1\.$/m,
    )
    const verified = await runCli(['spool', 'verify', '--path', path])
    expect(verified.status).toBe(1)
    expect(verified.stdout).toContain('Lane 1: payloads 1 to 1 are missing.')
  })

  test('is in the audit log, and a plan is not', async () => {
    const path = await spoolWithoutCurrent()
    const before = Date.now()
    await runCli(['spool', 'repair', '--path', path])
    expect(await readAudit(path, { limit: 10 })).toMatchObject({ changes: [] })
    const backup = join(await newFolder(), 'copy')
    const argv = ['spool', 'repair', '--path', path, '--yes', '--backup', backup]
    const { stderr } = await runCli(argv, { env: { SUDO_USER: 'alice' } })
    expect(stderr).toBe('')
    const { changes, damaged } = await readAudit(path, { limit: 10 })
    expect(damaged).toBe(0)
    expect(changes).toMatchObject([
      {
        change: 'spool/repair',
        request: `backup=${encodeURIComponent(backup)}`,
        by: { via: 'offline', sudoUser: 'alice' },
        outcome: 'done',
        result: { state: 'repaired' },
      },
    ])
    expect(changes[0]!.at).toBeGreaterThanOrEqual(before)
    expect((await stat(join(path, 'audit.ndjson'))).mode & 0o777).toBe(0o600)
    const shown = await runCli(['audit', '--path', path])
    expect(shown.stdout).toContain('(sudo: alice), as claimed by a command without a daemon')
  })

  test('is in the audit log where it fails, and leaves nothing where no spool is', async () => {
    const path = await spoolWithoutCurrent()
    // The directory of the copy is not empty.
    const argv = ['spool', 'repair', '--path', path, '--yes', '--backup', join(path, 'store')]
    expect((await runCli(argv)).status).toBe(1)
    const { changes } = await readAudit(path, { limit: 10 })
    expect(changes).toMatchObject([
      { outcome: 'refused', result: { code: expect.stringMatching(/^[A-Z_]+$/) } },
    ])
    const empty = await newFolder()
    await runCli(['spool', 'repair', '--path', empty, '--yes'])
    expect(await readdir(empty)).toEqual([])
  })

  test.skipIf(process.geteuid?.() !== 0)('leaves the audit log to the owner of the spool', async () => {
    const path = await spoolWithoutCurrent()
    await chown(path, 12_345, 12_345)
    await runCli(['spool', 'repair', '--path', path, '--yes'])
    expect(await stat(join(path, 'audit.ndjson'))).toMatchObject({ uid: 12_345, gid: 12_345 })
  })

  test('says that nothing is damaged, ends with status 0, and deletes what is kept with --purge', async () => {
    const path = await spoolWithoutCurrent()
    await runCli(['spool', 'repair', '--path', path, '--yes'])
    const whole = await runCli(['spool', 'repair', '--path', path])
    expect(whole).toMatchObject({ status: 0, stdout: `The files of the spool at ${path} are whole.\n` })
    expect(await readdir(path)).toContain('damaged')
    const purged = await runCli(['spool', 'repair', '--path', path, '--yes', '--purge'])
    expect(purged.stdout).toContain(`Deleted: ${join(path, 'damaged')}`)
    expect(await readdir(path)).not.toContain('damaged')
  })

  test('prints the report as JSON', async () => {
    const path = await spoolWithoutCurrent()
    const { status, stdout } = await runCli(['spool', 'repair', '--path', path, '--json'])
    expect(status).toBe(1)
    expect(JSON.parse(stdout)).toMatchObject({
      state: 'planned',
      damage: [{ file: 'CURRENT', unit: 'CURRENT' }],
      losses: { payloads: 0, ranges: [] },
    })
  })

  test('shows and merges a store that was set aside', async () => {
    const { spool, publish, path } = await openSpoolWorld()
    for (let n = 0; n < 3; n += 1) await publish(`truck ${n}`)
    await spool.close()
    await rename(join(path, 'store'), join(path, 'store.damaged-2026-01-01T00-00-00'))
    const running = await openSpoolWorld({ path })
    await running.publish('truck 9')
    await running.spool.close()
    const plan = await runCli(['spool', 'repair', '--path', path])
    expect(plan.status).toBe(1)
    expect(plan.stdout).toMatch(/set aside\. It can be merged into the running one: 3 payloads \(0 batches\)/)
    const repaired = await runCli(['spool', 'repair', '--path', path, '--yes'])
    expect(repaired.status).toBe(0)
    expect(repaired.stdout).toContain('It was merged into the running one: 3 payloads')
    const merged = await openSpoolWorld({ path })
    expect(merged.spool.lanes().map(({ pending }) => pending)).toEqual([1, 3])
  })
})
