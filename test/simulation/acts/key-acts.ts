// key-acts.ts: the keys that sign the requests, in a file of the machine: they are changed in order, withdrawn at the
// service, and their file goes, or is half written.

import type { Random } from '../../support/random.ts'
import type { Machine } from '../machine/machine.ts'
import type { EndAct } from './act.ts'

export const keysPath = '/sim/etc/keys.json'

export type Keys = {
  /** Whether the services know the signer of a request. */
  isKnown(accessKeyId: string): boolean
  act(): EndAct
  /** Until the returned function is called, the services know none. */
  withdraw(): EndAct
}

/** For so long the services know the old keys beside the new ones. */
const graceMs = 20_000

export function createKeys({ disk, kernel }: Machine, random: Random): Keys {
  let made = 0
  let current = ''
  const known = new Set<string>()
  renew()
  return {
    isKnown: (accessKeyId) => known.has(accessKeyId),
    withdraw,
    act: () =>
      random.pick([
        () => renew,
        withdraw,
        () => {
          disk.world.remove(keysPath)
          return write
        },
        () => {
          disk.world.write(keysPath, random.pick(['', '{}', text().slice(0, 30), '[1]']))
          return write
        },
        () => {
          write({ expiresInMs: random.below(600_000) })
          return renew
        },
      ])(),
  }

  function withdraw(): EndAct {
    known.clear()
    return renew
  }

  function renew(): void {
    const former = current
    current = `AKIASIMULATION${String((made += 1)).padStart(6, '0')}`
    known.add(current)
    write()
    kernel.at(graceMs, () => void known.delete(former))
  }

  function write({ expiresInMs = null }: { expiresInMs?: number | null } = {}): void {
    disk.world.write(keysPath, text(expiresInMs))
  }

  function text(expiresInMs: number | null = null): string {
    const secretAccessKey = 'simulated-secret-of-forty-characters-000'
    const expires =
      expiresInMs === null ? {} : { Expiration: new Date(kernel.trueMs + expiresInMs).toISOString() }
    return JSON.stringify({ accessKeyId: current, secretAccessKey, ...expires })
  }
}
