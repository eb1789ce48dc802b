import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createCommitter, type CommitterOptions, type Group } from '../../../src/spool/chunk-log/committer.ts'
import { explainWrite } from '../../../src/spool/spool-errors.ts'
import type { GatewayError } from '../../../src/std/gateway-error.ts'
import type { StoreOp } from '../../../src/storage/storage.ts'
import { newFolder } from '../../support/folders.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { createHeldStore } from '../../support/held-store.ts'

/** A committer on real LevelDB. A message is a name: it is one key of the database, and one entry of its group. */
async function openCommitter(options: Partial<CommitterOptions> = {}) {
  const held = createHeldStore()
  const store = await held.openStore(join(await newFolder(), 'store'))
  onTestFinished(() => store.close())
  const writes: { keys: string[]; sync: boolean }[] = []
  const acks: string[] = []
  const failures: number[] = []
  let fails = false
  const clock = createFakeClock()
  const committer = createCommitter(
    {
      store: {
        ...store,
        async write(ops, how) {
          writes.push({ keys: ops.map(({ key }) => key.toString()), sync: how.sync })
          await store.write(ops, how)
          if (fails) throw Object.assign(new Error('no space'), { code: 'ENOSPC' })
        },
      },
      clock,
      mark: { prepare: () => undefined, written: () => undefined },
      makeGroup,
      explain: explainWrite,
      changed: () => undefined,
      failed: (_fault, unawaited) => void failures.push(unawaited),
    },
    { groupBytesMax: 1000, busyMessages: 1e6, busyBytes: 1e9, uncommittedBytesMax: 5000, ...options },
  )

  function makeGroup(): Group & { names: string[] } {
    const names: string[] = []
    return {
      bytes: 0,
      acks: [],
      unawaited: 0,
      names,
      prepare: (ops) => void ops.push(...names.map(putOf)),
      committed: () => void acks.push('committed'),
    }
  }

  function send(
    name: string,
    {
      bytes = 100,
      awaited = true,
      commitsBefore,
    }: { bytes?: number; awaited?: boolean; commitsBefore?: number } = {},
  ): void {
    committer.open().names.push(name)
    committer.open().bytes += bytes
    const ack = awaited ? (fault: GatewayError | null) => void acks.push(fault?.code ?? name) : null
    committer.endMessage(ack, commitsBefore)
  }

  return {
    committer,
    clock,
    held,
    store,
    writes,
    acks,
    failures,
    send,
    failWrites() {
      fails = true
    },
    keysOf: () => writes.map(({ keys }) => keys.join(' ')),
  }
}

function putOf(name: string): StoreOp {
  return { type: 'put', key: Buffer.from(name), value: Buffer.from(name) }
}

function partNamed(name: string, log: string[] = []) {
  return { prepare: (ops: StoreOp[]) => void ops.push(putOf(name)), committed: () => void log.push(name) }
}

describe('the committer', () => {
  test.each([
    ['messages', { busyMessages: 5 }],
    ['bytes', { busyBytes: 500 }],
  ])('is busy above its bound of %s until they are written', async (_what, bound) => {
    const { committer, held, send } = await openCommitter(bound)
    held.hold()
    for (let n = 1; n <= 5; n += 1) send(`${n}`)
    expect(committer.busy()).toBe(false)
    const before = committer.commits()
    send('one more')
    expect(committer.busy()).toBe(true)
    expect(committer.congested()).toBe(false)
    held.release()
    await committer.idle()
    expect(committer.busy()).toBe(false)
    expect(committer.commits()).toBeGreaterThan(before)
  })

  test('is congested above its bound until the bytes are written', async () => {
    const { committer, held, send } = await openCommitter({ uncommittedBytesMax: 1000 })
    held.hold()
    for (let n = 0; n < 10; n += 1) send(`${n}`)
    expect(committer.congested()).toBe(false)
    send('one more')
    expect(committer.congested()).toBe(true)
    held.release()
    await committer.idle()
    expect(committer.congested()).toBe(false)
  })
})

describe('a write that gathers', () => {
  /** A committer whose last write has just ended, as where many connections send. */
  async function openBusy() {
    const parts = await openCommitter()
    for (let n = 0; n < 40; n += 1) await parts.committer.commit(partNamed('seal'))
    parts.writes.length = 0
    return parts
  }
  const gatherMs = 4
  /** The connection was last heard of before all writes. */
  const rare = { commitsBefore: 0 }

  test('waits for messages of connections that sent nothing lately, and no longer than a moment', async () => {
    const { committer, clock, keysOf, acks, send } = await openBusy()
    send('a', rare)
    for (let turns = 0; turns < 5; turns += 1) await nextTurn()
    expect(keysOf()).toEqual([])
    send('b', rare)
    await clock.advance(gatherMs - 1)
    expect(keysOf()).toEqual([])
    await clock.advance(1)
    expect(keysOf()).toEqual(['a b'])
    while (acks.length === 0) await nextTurn()
    expect(acks).toEqual(['committed', 'a', 'b'])
    expect(committer.busy()).toBe(false)
    expect(clock.pending()).toBe(0)
  })

  test('starts at once with a message of a connection that has just sent another', async () => {
    const { committer, clock, keysOf, send } = await openBusy()
    send('rare', rare)
    send('again', { commitsBefore: committer.commits() - 32 })
    await nextTurn()
    expect(keysOf()).toEqual(['rare again'])
    expect(clock.pending()).toBe(0)
    await committer.idle()
    // What follows it may wait again.
    send('next', rare)
    for (let turns = 0; turns < 5; turns += 1) await nextTurn()
    expect(clock.pending()).toBe(1)
  })

  test.each([
    ['a message of no connection', {}],
    ['the first message after the last commit', { commitsBefore: 40 }],
  ])('starts at once with %s', async (_what, how) => {
    const { keysOf, send } = await openBusy()
    send('a', rare)
    send('b', how)
    await nextTurn()
    expect(keysOf()).toEqual(['a b'])
  })

  test('starts at once with a seal, for a reader, and for whoever waits for the end', async () => {
    for (const act of ['seal', 'look', 'idle'] as const) {
      const { committer, keysOf, send } = await openBusy()
      send('a', rare)
      if (act === 'seal') void committer.commit(partNamed('seal'))
      else if (act === 'look') void committer.betweenWrites(() => 0, new AbortController().signal)
      else void committer.idle()
      await nextTurn()
      expect(keysOf()).toEqual([act === 'seal' ? 'seal a' : 'a'])
      await committer.idle()
    }
  })

  test('starts at once with many messages, and where the last write is long ago', async () => {
    const { committer, clock, keysOf, send } = await openBusy()
    for (let n = 0; n < 16; n += 1) send('a', { ...rare, bytes: 10 })
    await nextTurn()
    expect(keysOf()).toHaveLength(1)
    await committer.idle()
    await clock.advance(17)
    send('b', rare)
    await nextTurn()
    expect(keysOf()).toHaveLength(2)
  })
})

describe('a failed write', () => {
  test('is no success although the store reports one after the failure', async () => {
    const { committer, held, acks, send } = await openCommitter()
    held.hold()
    send('a')
    while (held.waiting() === 0) await nextTurn()
    committer.fail(explainWrite(new Error('a read failed')))
    held.release()
    while (committer.writes() === 0) await nextTurn()
    expect(acks).toEqual(['SPOOL_WRITE_FAILED'])
  })
})

describe('a read between writes', () => {
  const never = new AbortController().signal

  test('waits for the running write, and precedes the next one', async () => {
    const { committer, held, store, keysOf, send } = await openCommitter()
    held.hold()
    send('a')
    while (held.waiting() === 0) await nextTurn()
    send('b')
    const look = () => ({ keys: keysOf(), value: store.get(Buffer.from('a')) })
    const seen = committer.betweenWrites(look, never)
    held.release()
    const found = await seen
    expect(found?.keys).toEqual(['a'])
    expect(await found?.value).toEqual(Buffer.from('a'))
  })
})
