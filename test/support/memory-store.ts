// memory-store.ts: a second implementation of the store, with power cuts and failed writes. After a failed write it loses
// later writes, as LevelDB does. It passes the same contract suite as the real one (test/storage).
//
// A write with `sync` is durable when it resolves. A crash keeps all synced writes, and the running write
// completely or not at all. Writes without sync are lost: the worst case of a disk.

import type {
  OpenStore,
  ReadOptions,
  Store,
  StoreEntry,
  StoreOp,
  StoreRange,
} from '../../src/storage/storage.ts'

export type MemoryDisk = {
  /** Opens the store for a process. After a crash its calls never resolve, because that process is dead. */
  boot(): OpenStore
  /** While held, writes do not resolve. */
  hold(): void
  release(): void
  /** Writes that wait. */
  waiting(): number
  /** A power cut: the current handle has no further effect. */
  crash(options: { keepRunning: boolean }): void
  /** The next write fails; the handle then reports success for writes that it loses. `partly`: it is on disk. */
  failNextWrite(options: { reachesDisk: boolean; code?: string }): void
  /** Writes succeed again. */
  heal(): void
}

type Running = { ops: readonly StoreOp[]; sync: boolean; resolve: () => void; reject: (error: Error) => void }

export function createMemoryDisk(): MemoryDisk {
  /** Synced content, and content as the open handle shows it. */
  let synced = new Map<string, Buffer>()
  let shown = new Map<string, Buffer>()
  let generation = 0
  let lives = 0
  let opened = false
  let held = false
  let running: Running[] = []
  let failure: { reachesDisk: boolean; code?: string } | null = null
  let lying = false

  const boot = (): OpenStore => {
    const life = lives
    return (path) => (life === lives ? openStore(path) : never())
  }

  const openStore: OpenStore = async () => {
    if (opened) throw new Error('the memory store is open already')
    opened = true
    lying = false
    shown = new Map(synced)
    generation += 1
    return storeOf(generation)
  }

  function storeOf(mine: number): Store {
    const life = lives
    const alive = () => {
      if (mine !== generation || !opened) throw coded('LEVEL_DATABASE_NOT_OPEN')
    }
    return {
      async write(ops, { sync }) {
        if (life !== lives) return never()
        alive()
        // The caller may reuse its buffers; LevelDB copies as well.
        const copied = ops.map((op): StoreOp =>
          op.type === 'put'
            ? { type: 'put', key: Buffer.from(op.key), value: Buffer.from(op.value) }
            : { type: 'del', key: Buffer.from(op.key) },
        )
        await new Promise<void>((resolve, reject) => {
          running.push({ ops: copied, sync, resolve, reject })
          if (!held) drain()
        })
      },
      async get(key) {
        if (life !== lives) return never()
        alive()
        return copyOf(shown.get(key.toString('latin1')))
      },
      pages: (range, options) => {
        alive()
        return pagesOf(entriesOf(shown, range, options ?? {}))
      },
      async compact() {
        alive()
      },
      async close() {
        if (mine !== generation) return
        opened = false
      },
    }
  }

  function drain(): void {
    while (running.length > 0) {
      const { ops, sync, resolve, reject } = running.shift()!
      if (failure !== null) {
        const { reachesDisk, code } = failure
        failure = null
        if (reachesDisk) apply(synced, ops)
        lying = true
        reject(coded(code ?? 'EIO'))
        continue
      }
      apply(shown, ops)
      // After a failed append LevelDB accepts further writes and loses them at the next open.
      if (sync && !lying) synced = new Map(shown)
      resolve()
    }
  }

  return {
    boot,
    hold() {
      held = true
    },
    release() {
      held = false
      drain()
    },
    waiting: () => running.length,
    crash({ keepRunning }) {
      const first = running[0]
      if (keepRunning && first !== undefined && !lying) {
        apply(shown, first.ops)
        if (first.sync) synced = new Map(shown)
      }
      running = []
      failure = null
      held = false
      opened = false
      generation += 1
      lives += 1
    },
    failNextWrite(options) {
      failure = options
    },
    heal() {
      failure = null
    },
  }
}

function apply(map: Map<string, Buffer>, ops: readonly StoreOp[]): void {
  for (const op of ops) {
    if (op.type === 'put') map.set(op.key.toString('latin1'), op.value)
    else map.delete(op.key.toString('latin1'))
  }
}

function entriesOf(map: Map<string, Buffer>, range: StoreRange, options: ReadOptions): StoreEntry[] {
  const gte = range.gte.toString('latin1')
  const lt = range.lt.toString('latin1')
  const names: string[] = []
  for (const name of map.keys()) if (name >= gte && name < lt) names.push(name)
  names.sort()
  if (options.reverse === true) names.reverse()
  return names
    .slice(0, options.limit ?? names.length)
    .map((name) => [Buffer.from(name, 'latin1'), Buffer.from(map.get(name) ?? Buffer.alloc(0))])
}

async function* pagesOf(entries: StoreEntry[]): AsyncGenerator<StoreEntry[]> {
  // Small pages, so that a reader crosses the boundary between two.
  for (let index = 0; index < entries.length; index += 3) yield entries.slice(index, index + 3)
}

function never<Result>(): Promise<Result> {
  return new Promise(() => undefined)
}

function copyOf(value: Buffer | undefined): Buffer | undefined {
  return value === undefined ? undefined : Buffer.from(value)
}

function coded(code: string): Error {
  return Object.assign(new Error(`memory store: ${code}`), { code })
}

/** A store in which reading fails wherever it meets one of `keys`, as in a damaged block of a table. */
export function withDamagedBlock(openStore: OpenStore, keys: readonly Buffer[]): OpenStore {
  const meets = (key: Buffer) => keys.some((damaged) => damaged.equals(key))
  return async (path) => {
    const store = await openStore(path)
    return {
      ...store,
      get: async (key) => (meets(key) ? Promise.reject(coded('LEVEL_CORRUPTION')) : store.get(key)),
      async *pages(range, options) {
        for await (const page of store.pages(range, options)) {
          if (page.some(([key]) => meets(key))) throw coded('LEVEL_CORRUPTION')
          yield page
        }
      },
    }
  }
}
