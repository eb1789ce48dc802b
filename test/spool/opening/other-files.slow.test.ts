// Other things in the place of the gateway's files: a start never waits for them, and says what is wrong.

import { execFileSync, spawnSync } from 'node:child_process'
import { mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { State } from '../../../src/domain/condition-state.ts'
import { GatewayError } from '../../../src/std/gateway-error.ts'
import { openSpool } from '../../../src/spool/spool.ts'
import { checkInThread, openLevelStore, realDisk } from '../../../src/storage/storage.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { newFolder } from '../../support/folders.ts'
import { ended } from '../../support/open-spool.ts'
import { payloadNamed, smallOptions } from '../../support/spool-world.ts'

const clock = createFakeClock()

async function open(path: string) {
  const spool = await openSpool(
    {
      clock,
      newId: () => crypto.randomUUID(),
      random: Math.random,
      emit: () => undefined,
      openStore: openLevelStore,
      checkStore: checkInThread,
      disk: realDisk,
    },
    { ...smallOptions(path, { ballastBytes: 4096 }), onDamage: 'refuse' },
  )
  onTestFinished(() => spool.close())
  return { spool }
}

/** A spool with tables and a log, whose daemon stopped in order. */
async function spoolWithData(): Promise<string> {
  const path = join(await newFolder(), 'spool')
  for (const name of ['a', 'b']) {
    const { spool } = await open(path)
    expect(spool.append(payloadNamed(name))).toBe('stored')
    expect(await ended(spool)).toBeNull()
    await spool.close()
  }
  return path
}

/** Killed, since Node removes its sockets at the end. A short name: that of a socket is limited. */
const bindSocket =
  "require('net').createServer().listen(process.argv[1], () => process.kill(process.pid, 'SIGKILL'))"

const kinds: Record<string, (folder: string, name: string) => unknown> = {
  'a pipe': (cwd, name) => execFileSync('mkfifo', [name], { cwd }),
  'a directory': (folder, name) => mkdir(join(folder, name)),
  'a circular link': (folder, name) => symlink(name, join(folder, name)),
  'a socket': (cwd, name) => spawnSync(process.execPath, ['-e', bindSocket, name], { cwd }),
}

async function replace(path: string, kind: string): Promise<void> {
  await rm(path, { force: true })
  await kinds[kind]?.(dirname(path), basename(path))
}

async function nameOf(path: string, file: string): Promise<string> {
  const names = await readdir(join(path, 'store'))
  return join(
    'store',
    names.find((name) => name.startsWith(file) || name.endsWith(file))!,
  )
}

/** Opens it, or says why not. */
async function tried(path: string): Promise<{ code: string; text: string; states: State[] }> {
  try {
    const { spool } = await open(path)
    expect(spool.append(payloadNamed('c'))).toBe('stored')
    expect(await ended(spool)).toBeNull()
    return { code: 'opened', text: '', states: [...spool.states()] }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return { code: error.code, text: `${error.what} ${error.why} ${error.act}`, states: [] }
  }
}

describe.each(['clean', 'unclean'])('after a %s end, in the place of', (end) => {
  describe.each(['CURRENT', 'MANIFEST', '.log', '.ldb'])('%s of the store', (file) => {
    test.each(Object.keys(kinds))('%s is damage', async (kind) => {
      const path = await spoolWithData()
      const name = await nameOf(path, file)
      await replace(join(path, name), kind)
      if (end === 'unclean') await writeFile(join(path, 'in-use'), '{}')
      const { code, text } = await tried(path)
      expect(code, text).toBe('SPOOL_DAMAGED')
      expect(text).toContain(name.slice('store/'.length))
    })
  })

  describe.each(['in-use', 'check-state.json', 'last-exit', 'ballast', 'mark'])('%s', (file) => {
    test.each(Object.keys(kinds))('%s is replaced, or refused with its path', async (kind) => {
      const path = await spoolWithData()
      if (end === 'unclean') await writeFile(join(path, 'in-use'), '{}')
      await replace(join(path, file), kind)
      const isFixed = kind === 'a directory' && file === 'in-use'
      const movedFirst = ['SPOOL_UNWRITABLE', join(path, file), 'Move what is there out of the directory.']
      const expected = file === 'mark' ? ['opened', join(path, 'mark')] : isFixed ? movedFirst : ['opened']
      const { code, text, states } = await tried(path)
      const said = JSON.stringify([code, text, states.filter((one) => one.code === 'MARK_UNWRITABLE')])
      for (const part of expected) expect(said).toContain(part)
    })
  })
})

test.each(['store'])('a file in the place of the directory %s is named', async (name) => {
  const path = await spoolWithData()
  await rm(join(path, name), { recursive: true })
  await writeFile(join(path, name), '')
  expect(await tried(path)).toMatchObject({
    code: 'SPOOL_NOT_DIRECTORY',
    text: expect.stringContaining(join(path, name)),
  })
})
