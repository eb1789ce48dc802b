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
  const ackWaits: number[] = []
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
      acked: (waitMs) => void ackWaits.push(waitMs),
      failed: (_fault, unawaited) => void failures.push(unawaited),
    },
    {
      groupBytesMax: 1000,
      busyMessages: 1e6,
      busyBytes: 1e9,
      uncommittedBytesMax: 5000,
      ackDelayMaxMs: 0,
      group: { chunkPayloadsMax: 1000 },
      ...options,
    },
  )

  function makeGroup(): Group & { names: string[] } {
    const names: string[] = []
    return {
      bytes: 0,
      acks: [],
      unawaited: 0,
      openedMs: 0,
      names,
      prepare: (ops) => void ops.push(...names.map(putOf)),
      committed: () => void acks.push('committed'),
    }
  }

  function send(
    name: string,
    { bytes = 100, awaited = true, waitMs }: { bytes?: number; awaited?: boolean; waitMs?: number } = {},
  ): void {
    committer.open().names.push(name)
    committer.open().bytes += bytes
    const ack = awaited ? (fault: GatewayError | null) => void acks.push(fault?.code ?? name) : null
    committer.endMessage(ack, waitMs)
  }

  return {
    committer,
    clock,
    held,
    store,
    writes,
    acks,
    failures,
    ackWaits,
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

describe('a write that waits for others', () => {
  const ackDelayMaxMs = 250
  const openWaiting = () => openCommitter({ ackDelayMaxMs, group: { chunkPayloadsMax: 20 } })
  const turns = async () => {
    for (let n = 0; n < 5; n += 1) await nextTurn()
  }

  test('starts at the earliest deadline of what it holds', async () => {
    const { committer, clock, keysOf, acks, ackWaits, send } = await openWaiting()
    send('a', { waitMs: 100 })
    await clock.advance(20)
    send('b', { waitMs: 50 })
    void committer.commit(partNamed('settle'), 200)
    await clock.advance(49)
    await turns()
    expect(keysOf()).toEqual([])
    await clock.advance(1)
    expect(keysOf()).toEqual(['settle a b'])
    while (acks.length === 0) await nextTurn()
    expect(acks).toEqual(['committed', 'a', 'b'])
    expect(ackWaits).toEqual([70])
    expect(clock.pending()).toBe(0)
  })

  test('never waits longer than the bound, whatever is asked', async () => {
    const { committer, clock, keysOf } = await openWaiting()
    void committer.commit(partNamed('receipts'), Infinity)
    await clock.advance(ackDelayMaxMs - 1)
    await turns()
    expect(keysOf()).toEqual([])
    await clock.advance(1)
    expect(keysOf()).toEqual(['receipts'])
  })

  test('waits not at all with a bound of 0', async () => {
    const { clock, keysOf, send } = await openCommitter({ ackDelayMaxMs: 0 })
    send('a', { waitMs: 1000 })
    await nextTurn()
    expect(keysOf()).toEqual(['a'])
    expect(clock.pending()).toBe(0)
  })

  test.each([
    ['a message that may not wait', {}],
    ['one that may wait for less than a timer measures', { waitMs: 0.9 }],
  ])('starts at once with %s', async (_what, how) => {
    const { clock, keysOf, send } = await openWaiting()
    send('a', { waitMs: 100 })
    send('b', how)
    await nextTurn()
    expect(keysOf()).toEqual(['a b'])
    expect(clock.pending()).toBe(0)
  })

  test('starts at once with a seal, for a reader, and for whoever waits for the end', async () => {
    for (const act of ['seal', 'look', 'idle'] as const) {
      const { committer, keysOf, send } = await openWaiting()
      send('a', { waitMs: 100 })
      if (act === 'seal') void committer.commit(partNamed('seal'))
      else if (act === 'look') void committer.betweenWrites(() => 0, new AbortController().signal)
      else void committer.idle()
      await nextTurn()
      expect(keysOf()).toEqual([act === 'seal' ? 'seal a' : 'a'])
      await committer.idle()
    }
  })

  test('starts at once with the messages of a full batch, also where they have no bytes', async () => {
    const { keysOf, send } = await openWaiting()
    for (let n = 0; n < 19; n += 1) send('a', { waitMs: 100, bytes: 0 })
    await turns()
    expect(keysOf()).toEqual([])
    send('b', { waitMs: 100, bytes: 0 })
    await nextTurn()
    expect(keysOf()).toHaveLength(1)
  })

  test('counts from the arrival where a write runs meanwhile', async () => {
    const { clock, held, keysOf, send } = await openWaiting()
    held.hold()
    send('a')
    while (held.waiting() === 0) await nextTurn()
    send('late', { waitMs: 40 })
    send('later', { waitMs: 100 })
    await clock.advance(40)
    held.release()
    while (keysOf().length < 2) await nextTurn()
    expect(keysOf()).toEqual(['a', 'late later'])
  })

  test('waits again behind a write, and is given up with the store', async () => {
    const { committer, clock, keysOf, acks, send } = await openWaiting()
    send('a')
    await committer.idle()
    send('b', { waitMs: 100 })
    await turns()
    expect(keysOf()).toEqual(['a'])
    expect(clock.pending()).toBe(1)
    committer.fail(explainWrite(new Error('a read failed')))
    expect(acks.at(-1)).toBe('SPOOL_WRITE_FAILED')
    expect(clock.pending()).toBe(0)
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
