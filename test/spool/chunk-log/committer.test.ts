import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createCommitter, type CommitterOptions, type Group } from '../../../src/spool/chunk-log/committer.ts'
import { explainWrite } from '../../../src/spool/spool-errors.ts'
import type { StoreOp } from '../../../src/storage/storage.ts'
import { newFolder } from '../../support/folders.ts'
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

  function send(name: string, { bytes = 100, awaited = true } = {}): void {
    committer.open.names.push(name)
    committer.open.bytes += bytes
    committer.endMessage(awaited ? (fault) => void acks.push(fault === null ? name : fault.code) : null)
  }

  return {
    committer,
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
  test('gives no ack before the write is durable, and then one for each message in order', async () => {
    const { committer, held, store, acks, send } = await openCommitter()
    held.hold()
    for (const name of ['a', 'b', 'c']) send(name)
    while (held.waiting() === 0) await nextTurn()
    expect(acks).toEqual([])
    expect(await store.get(Buffer.from('a'))).toBeUndefined()
    held.release()
    await committer.idle()
    expect(acks).toEqual(['committed', 'a', 'b', 'c'])
    expect(await store.get(Buffer.from('c'))).toEqual(Buffer.from('c'))
  })

  test('writes with sync always, and one write at a time', async () => {
    const { committer, held, writes, send } = await openCommitter()
    held.hold()
    send('a')
    while (held.waiting() === 0) await nextTurn()
    send('b')
    const part = committer.commit(partNamed('seal'))
    await nextTurn()
    expect(held.waiting()).toBe(1)
    held.release()
    await part
    expect(writes).toEqual([
      { keys: ['a'], sync: true },
      { keys: ['seal', 'b'], sync: true },
    ])
    expect(committer.writes).toBe(2)
  })

  test('writes everything that arrived during a write together, parts before messages', async () => {
    const { committer, held, keysOf, acks, send } = await openCommitter()
    held.hold()
    send('a')
    while (held.waiting() === 0) await nextTurn()
    const parts = [committer.commit(partNamed('1', acks)), committer.commit(partNamed('2', acks))]
    for (const name of ['b', 'c']) send(name)
    held.release()
    await Promise.all(parts)
    expect(keysOf()).toEqual(['a', '1 2 b c'])
    expect(acks).toEqual(['committed', 'a', '1', '2', 'committed', 'b', 'c'])
  })

  test('queues a full group, and takes one group for each write in order', async () => {
    const { committer, held, keysOf, send } = await openCommitter({ groupBytesMax: 300 })
    held.hold()
    send('first')
    while (held.waiting() === 0) await nextTurn()
    for (const name of ['a', 'b', 'c', 'd', 'e']) send(name, { bytes: 150 })
    held.release()
    await committer.idle()
    expect(keysOf()).toEqual(['first', 'a b', 'c d', 'e'])
  })

  test('starts at once with much to write, else after the sockets of this turn were read', async () => {
    const options = { groupBytesMax: 1e6, uncommittedBytesMax: 1e6 }
    const { committer, held, keysOf, send } = await openCommitter(options)
    held.hold()
    send('small')
    expect(keysOf()).toEqual([])
    send('large', { bytes: 128 * 1024 })
    expect(keysOf()).toEqual(['small large'])
    send('next')
    await nextTurn()
    expect(keysOf()).toEqual(['small large'])
    held.release()
    await committer.idle()
    expect(keysOf()).toEqual(['small large', 'next'])
  })

  test('writes nothing for messages without content, and still acknowledges them', async () => {
    const { committer, writes, acks } = await openCommitter()
    await new Promise((resolve) => {
      committer.endMessage(resolve)
    })
    expect(acks).toEqual(['committed'])
    expect(writes).toEqual([])
    expect(committer.writes).toBe(0)
  })

  test.each([
    ['messages', { busyMessages: 5 }],
    ['bytes', { busyBytes: 500 }],
  ])('is busy above its bound of %s until they are written', async (_what, bound) => {
    const { committer, held, send } = await openCommitter(bound)
    held.hold()
    for (let n = 1; n <= 5; n += 1) send(`${n}`)
    expect(committer.busy).toBe(false)
    const before = committer.commits
    send('one more')
    expect(committer.busy).toBe(true)
    expect(committer.congested).toBe(false)
    held.release()
    await committer.idle()
    expect(committer.busy).toBe(false)
    expect(committer.commits).toBeGreaterThan(before)
  })

  test('is congested above its bound until the bytes are written', async () => {
    const { committer, held, send } = await openCommitter({ uncommittedBytesMax: 1000 })
    held.hold()
    for (let n = 0; n < 10; n += 1) send(`${n}`)
    expect(committer.congested).toBe(false)
    send('one more')
    expect(committer.congested).toBe(true)
    held.release()
    await committer.idle()
    expect(committer.congested).toBe(false)
  })
})

describe('a failed write', () => {
  test('acknowledges nothing, and every waiting message gets the fault, queued ones included', async () => {
    const { committer, held, acks, failures, send, failWrites } = await openCommitter({ groupBytesMax: 200 })
    failWrites()
    held.hold()
    send('running')
    while (held.waiting() === 0) await nextTurn()
    for (const name of ['queued', 'queued too', 'open']) send(name)
    send('unawaited', { awaited: false })
    const part = committer.commit(partNamed('part'))
    held.release()
    await expect(part).rejects.toMatchObject({ code: 'SPOOL_WRITE_FAILED' })
    expect(acks).toEqual(Array(4).fill('SPOOL_WRITE_FAILED'))
    expect(failures).toEqual([1])
  })

  test('ends the committer: it refuses messages and parts, and starts no further write', async () => {
    const { committer, writes, acks, send, failWrites } = await openCommitter()
    failWrites()
    send('a')
    await committer.idle()
    while (acks.length === 0) await nextTurn()
    send('b')
    await expect(committer.commit(partNamed('part'))).rejects.toMatchObject({ code: 'SPOOL_WRITE_FAILED' })
    await committer.idle()
    expect(acks).toEqual(['SPOOL_WRITE_FAILED', 'SPOOL_WRITE_FAILED'])
    expect(writes).toHaveLength(1)
  })

  test('is no success although the store reports one after the failure', async () => {
    const { committer, held, acks, send } = await openCommitter()
    held.hold()
    send('a')
    while (held.waiting() === 0) await nextTurn()
    committer.fail(explainWrite(new Error('a read failed')))
    held.release()
    while (committer.writes === 0) await nextTurn()
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

  test('finds nothing when it is aborted or when the committer fails first', async () => {
    const { committer, held, send } = await openCommitter()
    held.hold()
    send('a')
    while (held.waiting() === 0) await nextTurn()
    const stop = new AbortController()
    const looks = [
      committer.betweenWrites(() => 'seen', stop.signal),
      committer.betweenWrites(() => 'seen', never),
    ]
    stop.abort()
    expect(await looks[0]).toBeNull()
    committer.fail(explainWrite(new Error('a read failed')))
    expect(await looks[1]).toBeNull()
    expect(await committer.betweenWrites(() => 'seen', never)).toBeNull()
    held.release()
  })
})
