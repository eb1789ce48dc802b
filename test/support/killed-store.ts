// killed-store.ts: a real LevelDB database as `kill -9` leaves it: a log, and tables where there was much to
// write. A program of its own writes it, because a killed process cannot be the test.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { openLevelStore, type StoreOp } from '../../src/storage/storage.ts'
import { createRandom } from './random.ts'

export type Contents = {
  seed: number
  writes: number
  /** Largest number of operations in a write. */
  operationsMax: number
  /** Largest value. */
  valueBytesMax: number
  /** Distinct keys. */
  keys: number
}

/** Small, so that a few megabytes make tables at several levels. */
const writeBufferBytes = 1024 * 1024

/** The writes of a database, the same for the same seed. */
export function writesOf({ seed, writes, operationsMax, valueBytesMax, keys }: Contents): StoreOp[][] {
  const random = createRandom(seed)
  return Array.from({ length: writes }, () =>
    Array.from({ length: 1 + random.below(operationsMax) }, (): StoreOp => {
      const key = Buffer.from(`key ${String(random.below(keys)).padStart(6, '0')}`)
      if (random.chance(0.2)) return { type: 'del', key }
      const value = Buffer.alloc(random.below(valueBytesMax + 1))
      for (let at = 0; at < value.length; at += 1) value[at] = random.below(256)
      return { type: 'put', key, value }
    }),
  )
}

/** What a database holds after writes: hex of the key to hex of the value. */
export function contentAfter(writes: readonly (readonly StoreOp[])[]): Map<string, string> {
  const content = new Map<string, string>()
  for (const operation of writes.flat()) {
    const key = operation.key.toString('hex')
    if (operation.type === 'del') content.delete(key)
    else content.set(key, operation.value.toString('hex'))
  }
  return sorted(content)
}

export function sorted(content: ReadonlyMap<string, string>): Map<string, string> {
  return new Map([...content].toSorted(([one], [other]) => (one < other ? -1 : 1)))
}

/** Opens a database and reads all of it. */
export async function contentOf(path: string): Promise<Map<string, string>> {
  const store = await openLevelStore(path)
  const content = new Map<string, string>()
  for await (const page of store.pages({ gte: Buffer.alloc(0), lt: Buffer.alloc(64, 255) }))
    for (const [key, value] of page) content.set(key.toString('hex'), value.toString('hex'))
  await store.close()
  return content
}

/** Writes a database in another process and kills it. */
export async function writeKilledStore(path: string, contents: Contents): Promise<void> {
  const child = spawn(process.execPath, [import.meta.filename, path, JSON.stringify(contents)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  const [first] = (await Promise.race([once(child.stdout, 'data'), exited])) as [unknown]
  child.kill('SIGKILL')
  await exited
  if (!(first instanceof Uint8Array)) throw new Error('the writer of the database failed')
}

const [, program, path, json] = process.argv
if (program === import.meta.filename && path !== undefined && json !== undefined) {
  const store = await openLevelStore(path, { writeBufferBytes })
  for (const write of writesOf(JSON.parse(json) as Contents)) await store.write(write, { sync: true })
  process.stdout.write('written\n')
  setInterval(() => undefined, 60_000)
}
