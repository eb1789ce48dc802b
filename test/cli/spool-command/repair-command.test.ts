// Spools of another user, and payloads that a repair loses. More of repairs is in test/cli/transcripts.

import { chmod, chown, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { runCli } from '../../support/cli-world.ts'
import { newFolder } from '../../support/folders.ts'
import { openSpoolWorld } from '../../support/open-spool.ts'

test.skipIf(process.geteuid?.() !== 0)('spool repair leaves a private audit log to its owner', async () => {
  const { spool, publish, path } = await openSpoolWorld()
  await publish('truck 1')
  await spool.close()
  await rm(join(path, 'store/CURRENT'))
  await chown(path, 12_345, 12_345)
  await runCli(['spool', 'repair', '--path', path, '--yes'])
  const audit = await stat(join(path, 'audit.ndjson'))
  expect(audit).toMatchObject({ uid: 12_345, gid: 12_345 })
  expect(audit.mode & 0o777).toBe(0o600)
})

test('spool repair says that the gateway counts what is lost, and until then verify ends with 1', async () => {
  const { spool, publish, path } = await openSpoolWorld()
  for (let n = 0; n < 5; n += 1) await publish(`truck ${n}`)
  await spool.close()
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

test('spool repair leaves nothing where no spool is', async () => {
  const empty = await newFolder()
  await runCli(['spool', 'repair', '--path', empty, '--yes'])
  expect(await readdir(empty)).toEqual([])
})

test.skipIf(process.getuid?.() !== 0)('spool waiting says who may read it', async () => {
  const folder = await newFolder()
  const spool = join(folder, 'private/spool')
  await mkdir(spool, { recursive: true })
  await chmod(folder, 0o755)
  await chmod(join(folder, 'private'), 0o700)
  process.seteuid?.(65_534)
  onTestFinished(() => process.seteuid?.(0))
  const { status, stderr } = await runCli(['spool', 'waiting', '--path', spool])
  expect([status, stderr]).toEqual([1, expect.stringMatching(/^SPOOL_UNWRITABLE[^]*EACCES[^]*as root/)])
})
