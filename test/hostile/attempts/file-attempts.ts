// file-attempts.ts: what other users of the machine find in the files of the gateway, and what its log shows.

import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fleetUser, otherUser, type HostileWorld } from '../hostile-world.ts'
import type { Attempt } from './attempt.ts'

const who = 'another user of the machine'

async function modesBelow(path: string): Promise<{ path: string; mode: number; isDirectory: boolean }[]> {
  const names = await readdir(path, { recursive: true })
  const found = await Promise.all(
    ['.', ...names].map(async (name) => {
      // LevelDB deletes files meanwhile.
      const stats = await stat(join(path, name)).catch(() => null)
      return stats === null
        ? null
        : { path: name, mode: stats.mode & 0o777, isDirectory: stats.isDirectory() }
    }),
  )
  return found.filter((one) => one !== null)
}

async function openTo(world: HostileWorld, kind: 'directories' | 'files'): Promise<string> {
  const all = await modesBelow(join(world.folder, 'spool'))
  const open = all.filter(
    ({ mode, isDirectory }) => isDirectory === (kind === 'directories') && (mode & 0o077) !== 0,
  )
  return open.length === 0
    ? 'for the owner only'
    : `open: ${open
        .slice(0, 5)
        .map(({ path, mode }) => `${path} ${mode.toString(8)}`)
        .join(', ')}`
}

export const fileAttempts: readonly Attempt[] = [
  {
    who,
    where: 'files',
    what: 'lists the directories of the spool',
    expected: 'for the owner only',
    act: (world) => openTo(world, 'directories'),
  },
  {
    who,
    where: 'files',
    what: 'reads the files of the spool',
    expected: 'for the owner only',
    act: (world) => openTo(world, 'files'),
  },
  {
    who: 'a reader of the log',
    where: 'files',
    what: 'looks for passwords',
    expected: 'none',
    act({ gateway }) {
      const text = JSON.stringify(gateway.lines)
      return Promise.resolve(
        [fleetUser, otherUser].some(({ password }) => text.includes(password)) ? 'a password' : 'none',
      )
    },
  },
  {
    who: 'a reader of the log',
    where: 'files',
    what: 'looks for control characters that a client sent',
    expected: 'none',
    act({ gateway }) {
      // The lines are parsed: what was escaped as JSON is a real character again.
      const isFound = gateway.lines.some(({ msg = '' }) => /\p{Cc}/u.test(msg))
      return Promise.resolve(isFound ? 'found' : 'none')
    },
  },
]
