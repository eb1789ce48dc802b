// kill-points.ts: the points at which the daemon is killed, and the mistakes that the rules must find. Both
// are made outside of the product: by a store around the real one, and by a listener to the events.

import { basename } from 'node:path'
import { assertNever } from '../../src/std/assert.ts'
import type { GatewayEvent } from '../../src/domain/event.ts'
import type { OpenStore, Store, StoreOp } from '../../src/storage/storage.ts'

/** Places inside the daemon; beside them it is killed from outside at random moments, see harness.ts. */
export const points = [
  // A write with messages was started.
  'during-write',
  // It is durable, and its acks are not given yet.
  'after-write-before-ack',
  // The devices have their acks; the write of the next claim has not started.
  'before-seal',
  // The claim is durable, nothing of the batch was sent.
  'after-seal-before-send',
  // The answer was read; nothing was done with it yet.
  'after-answer',
  // The settlement is known and not written yet.
  'before-settle',
  'after-settle',
  'during-compaction',
  // At a read while the spool is being opened.
  'during-recovery',
] as const

export type Point = (typeof points)[number]

/**
 * Around a write that takes messages off a shelf: before it, during it, or after it and before its promise resolves.
 */
export const releasePoints = ['before-release', 'during-release', 'after-release'] as const

export type ReleasePoint = (typeof releasePoints)[number]

/**
 * `no-sync`        writes are not forced to the disk: only a power cut can show it
 * `early-ack`      a write is called durable before it is even started: any kill can show it
 * `early-seal`     so is the claim of a batch, and nothing else
 * `forget-window`  the dedup window is empty after a restart
 */
export const mistakes = ['no-sync', 'early-ack', 'early-seal', 'forget-window'] as const

export type Mistake = (typeof mistakes)[number]

export type AnyPoint = Point | ReleasePoint

export type Reach = (point: AnyPoint) => void

/** Calls `die` at the `after`-th time that `point` is reached. */
export function countdown(point: AnyPoint | null, after: number, die: () => void): Reach {
  let left = after
  return (reached) => {
    if (reached !== point) return
    left -= 1
    if (left === 0) die()
  }
}

export function reachByEvent(event: GatewayEvent, reach: Reach): void {
  if (event.kind === 'submission_ended' && event.outcome.kind === 'answered') reach('after-answer')
}

// First bytes of the keys, as in src/spool/chunk-log/key-layout.ts: the rules keep their own copy.
const chunkTable = 0x10
const batchTable = 0x11
const seenTable = 0x13
const keptTable = 0x21

/** Delay of a write that was reported as durable before it started. */
const lateMs = 20

export function reachInStore(openStore: OpenStore, reach: Reach): OpenStore {
  return async (path, storeOptions) => {
    const store = await openStore(path, storeOptions)
    if (isLedger(path)) return store
    return {
      ...store,
      get(key) {
        reach('during-recovery')
        return store.get(key)
      },
      pages(range, options) {
        reach('during-recovery')
        return store.pages(range, options)
      },
      async write(ops, options) {
        const messages = hasOp(ops, 'put', chunkTable) && !hasOp(ops, 'del', chunkTable)
        const seals = hasOp(ops, 'put', batchTable)
        const settles = hasOp(ops, 'del', batchTable)
        const releases = hasOp(ops, 'del', keptTable)
        if (seals) reach('before-seal')
        if (releases) reach('before-release')
        if (settles) reach('before-settle')
        const written = store.write(ops, options)
        if (messages) reach('during-write')
        if (releases) reach('during-release')
        await written
        if (releases) reach('after-release')
        if (messages) reach('after-write-before-ack')
        if (seals) reach('after-seal-before-send')
        if (settles) reach('after-settle')
      },
      async compact(range) {
        const compacted = store.compact(range)
        reach('during-compaction')
        // Repeated after the thread of LevelDB had time to start.
        await new Promise((resolve) => {
          setImmediate(resolve)
        })
        reach('during-compaction')
        await compacted
      },
    }
  }
}

/** The records of the ledger are another database, which may be lost. */
function isLedger(path: string): boolean {
  return basename(path) === 'records'
}

function hasOp(ops: readonly StoreOp[], type: StoreOp['type'], table: number): boolean {
  return ops.some((op) => op.type === type && op.key[0] === table)
}

export function makeMistake(openStore: OpenStore, mistake: Mistake): OpenStore {
  return async (path, storeOptions) => {
    const store = await openStore(path, storeOptions)
    if (isLedger(path)) return store
    switch (mistake) {
      case 'no-sync':
        return { ...store, write: (ops) => store.write(ops, { sync: false }) }
      case 'early-ack':
        return tellingEarly(store, () => true)
      case 'early-seal':
        return tellingEarly(store, (ops) => hasOp(ops, 'put', batchTable))
      case 'forget-window':
        return {
          ...store,
          write: (ops, options) =>
            store.write(
              ops.filter(({ key }) => key[0] !== seenTable),
              options,
            ),
        }
      default:
        return assertNever(mistake)
    }
  }
}

/** Reports a write as durable and starts it afterwards; the order of the writes does not change. */
function tellingEarly(store: Store, isEarly: (ops: readonly StoreOp[]) => boolean): Store {
  let last: Promise<unknown> = Promise.resolve()
  return {
    ...store,
    async write(ops, options) {
      const before = last
      if (!isEarly(ops)) {
        last = before.then(() => store.write(ops, options))
        await last
        return
      }
      last = new Promise((resolve) => {
        // By then the acks are in the sockets, and a request may be.
        setTimeout(() => resolve(before.then(() => store.write(ops, options))), lateMs)
      })
    },
    async close() {
      await last
      await store.close()
    },
  }
}
