import { describe, expect, test } from 'vitest'
import type { KeptStore, ShelfName } from '../../../src/domain/kept-store.ts'
import type { Spool, SpoolOptions } from '../../../src/spool/spool.ts'
import { eventually } from '../../support/eventually.ts'
import { collect, ended, keptIn, openSpoolWorld, type SpoolWorld } from '../../support/open-spool.ts'
import { deadLetterNamed, keptNamed } from '../../support/spool-world.ts'

const quarantine = 'quarantine:default'
const bound = 20_000
const wide: Partial<SpoolOptions> = { bytesMax: 64 * 1024 ** 2 }

type Kept = Parameters<typeof keptNamed>[1]

/** Keeps messages and waits for the last of them. */
async function keepAll(
  spool: Spool,
  names: readonly string[],
  optionsOf: (name: string) => Kept,
): Promise<void> {
  for (const name of names) {
    spool.keepMessage(keptNamed(name, optionsOf(name)).message)
    spool.endMessage(null)
  }
  expect(await ended(spool)).toBeNull()
}

function named(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}${String(index).padStart(4, '0')}`)
}

async function belowBound({ spool }: SpoolWorld, store: KeptStore): Promise<void> {
  await eventually(() => spool.totals().stores[store].bytes <= bound)
}

/** Every message that was kept is on the shelf or counted as dropped, and the events say the same. */
function expectCounted(world: SpoolWorld, store: KeptStore, kept: number, left: number): void {
  expect(world.spool.totals().evicted[store]).toBe(kept - left)
  const reported = world.eventsOf('messages_evicted').filter((event) => event.store === store)
  expect(reported.reduce((sum, { messages }) => sum + messages, 0)).toBe(kept - left)
}

describe('a full store that drops the oldest', () => {
  test('takes messages without end, holds nothing, and keeps the newest', async () => {
    const world = await openSpoolWorld({ changes: { ...wide, quarantineBytesMax: bound } })
    const { spool } = world
    const names = named('m', 300)
    for (let from = 0; from < names.length; from += 20)
      await keepAll(spool, names.slice(from, from + 20), () => ({ padding: 300 }))
    await belowBound(world, 'quarantine')
    expect(spool.holdReason()).toBeNull()
    const left = await keptIn(spool, quarantine)
    expect(left).toEqual(names.slice(-left.length))
    expect(left.length).toBeGreaterThan(20)
    const [shelf] = spool.shelves()
    expect(shelf).toMatchObject({ kept: 300, taken: 300 - left.length, messages: left.length })
    await world.clock.advance(2000)
    expectCounted(world, 'quarantine', 300, left.length)
  })

  test.each([
    ['another client id', { client: 'stranger' }, 'client "stranger": '],
    [
      'the same client id, another identity',
      { client: 'truck-7', identity: 'bob' },
      'client "bob/truck-7": ',
    ],
    [
      'whatever client ids',
      (name: string) => ({ device: 'truck-8', client: `client ${name}` }),
      'device "truck-8": ',
    ],
  ])(
    'drops messages of the client or device with the most (%s), whatever names it invents',
    async (_, stranger, shares) => {
      const world = await openSpoolWorld({ changes: { ...wide, quarantineBytesMax: bound } })
      const { spool } = world
      const honest = { device: 'truck-7', client: 'truck-7', identity: 'alice', padding: 300 }
      await keepAll(spool, named('honest', 3), () => honest)
      const invented = named('name', 200)
      for (let from = 0; from < invented.length; from += 20)
        await keepAll(spool, invented.slice(from, from + 20), (name) => ({
          device: name,
          ...(typeof stranger === 'function' ? stranger(name) : stranger),
          padding: 300,
        }))
      await belowBound(world, 'quarantine')
      const left = await keptIn(spool, quarantine)
      expect(left.filter((name) => name.startsWith('honest'))).toEqual(named('honest', 3))
      expect(left.slice(3)).toEqual(invented.slice(-(left.length - 3)))
      expect(world.eventsOf('messages_evicted')[0]?.shares).toContain(shares)
    },
  )

  test('drops messages under invented names, each of a client of its own, and not those of one name', async () => {
    const changes = { ...wide, quarantineBytesMax: 400_000 }
    const before = await openSpoolWorld({ changes })
    const honest = named('honest', 40)
    await keepAll(before.spool, honest, () => ({ device: 'truck-7', client: 'truck-7', padding: 300 }))
    const flood = async ({ spool }: SpoolWorld, prefix: string) => {
      const invented = named(prefix, 700)
      for (let from = 0; from < invented.length; from += 50)
        await keepAll(spool, invented.slice(from, from + 50), (name) => ({
          device: name,
          client: name,
          padding: 300,
        }))
      await eventually(() => spool.totals().stores.quarantine.bytes <= 400_000)
      expect(spool.totals().evicted.quarantine).toBeGreaterThan(0)
      expect(await keptIn(spool, quarantine, 'truck-7')).toEqual(honest)
    }
    await flood(before, 'name')
    const after = await before.reopen()
    // The count of what was there runs in the background, begun when something comes.
    await keepAll(after.spool, ['one more'], () => ({ device: 'y', client: 'y', padding: 10 }))
    await eventually(() => after.spool.totals().stores.quarantine.clients > 300)
    await flood(after, 'later')
  })

  test('also spares small shares after a restart, which forgets the counts', async () => {
    const before = await openSpoolWorld({ changes: { ...wide, quarantineBytesMax: bound } })
    await keepAll(before.spool, named('honest', 3), () => ({
      client: 'truck-7',
      device: 'truck-7',
      padding: 300,
    }))
    await keepAll(before.spool, named('m', 20), () => ({ client: 'stranger', device: 'x', padding: 300 }))
    const world = await before.reopen()
    // The count of what was there runs in the background, begun when something comes.
    await keepAll(world.spool, ['one more'], () => ({ client: 'other', device: 'y', padding: 10 }))
    await eventually(() => world.spool.totals().stores.quarantine.clients === 3)
    for (let n = 0; n < 10; n += 1)
      await keepAll(world.spool, named(`n${n} `, 10), (name) => ({
        client: 'stranger',
        device: name,
        padding: 300,
      }))
    await belowBound(world, 'quarantine')
    expect(await keptIn(world.spool, quarantine, 'truck-7')).toEqual(named('honest', 3))
  })

  test('passes its bound by no more than a group and what one burst brought', async () => {
    const world = await openSpoolWorld({ changes: { ...wide, quarantineBytesMax: bound } })
    const { spool } = world
    let most = 0
    for (let n = 0; n < 100; n += 1) {
      for (const name of named(`m${n} `, 10)) {
        spool.keepMessage(keptNamed(name, { padding: 300 }).message)
        spool.endMessage(null)
      }
      // As ingest does: it reads nothing while the spool is congested.
      await eventually(() => !spool.congested())
      await ended(spool)
      most = Math.max(most, spool.totals().stores.quarantine.bytes)
    }
    const burst = 10 * 800
    expect(most).toBeLessThan(bound + 2048 + burst)
    expect(spool.totals().evicted.quarantine).toBeGreaterThan(500)
  })

  test('moves messages that wait for their clock to the shelf of their kind and does not drop them', async () => {
    const world = await openSpoolWorld({ changes: { ...wide, quarantineBytesMax: bound } })
    const { spool } = world
    await keepAll(spool, named('clock', 3), () => ({ device: 'truck-7', client: 'gw', reason: 'FUTURE' }))
    for (let n = 0; n < 10; n += 1)
      await keepAll(spool, named(`m${n} `, 10), () => ({ device: 'truck-8', client: 'gw', padding: 300 }))
    await belowBound(world, 'quarantine')
    expect(await keptIn(spool, 'clock:default', 'truck-7')).toEqual(named('clock', 3))
  })

  test('dead letters of unlisted devices and of collected records leave those of listed devices alone', async () => {
    const changes = { ...wide, unlistedDeadLetterBytesMax: bound, partDeadLetterBytesMax: bound }
    const world = await openSpoolWorld({ changes })
    const { spool } = world
    const stores = ['dead_letters', 'unlisted_dead_letters', 'part_dead_letters'] as const
    for (let n = 0; n < 30; n += 1) {
      for (const store of stores)
        for (const name of named(`${store} ${n} `, 5)) {
          spool.addDeadLetter({ ...deadLetterNamed(name + 'x'.repeat(200)).deadLetter, device: name, store })
          spool.endMessage(null)
        }
      expect(await ended(spool)).toBeNull()
    }
    await belowBound(world, 'unlisted_dead_letters')
    await belowBound(world, 'part_dead_letters')
    const left = await collect(spool.deadLetters({ limit: 1000 }))
    const count = (store: KeptStore) => left.filter(({ deadLetter }) => deadLetter.store === store).length
    expect(count('dead_letters')).toBe(150)
    for (const store of stores.slice(1)) expect(spool.totals().evicted[store]).toBe(150 - count(store))
    expect(spool.totals().deadLetters).toBe(left.length)
    const bytes = stores.map((store) => spool.totals().stores[store].bytes)
    const reopened = await world.reopen()
    expect(stores.map((store) => reopened.spool.totals().stores[store].bytes)).toEqual(bytes)
  })
})

describe('a full store that holds', () => {
  test('says so at nine tenths, lets small shares in until its bound, and resumes when it has room', async () => {
    const world = await openSpoolWorld({ changes: { ...wide, clockBytesMax: bound } })
    const { spool } = world
    const shelf: ShelfName = 'clock:default'
    let kept = 0
    for (; !spool.isFull('clock'); kept += 1)
      await keepAll(spool, [`m${kept}`], () => ({
        shelf,
        device: 'truck-8',
        client: 'truck-8',
        padding: 300,
      }))
    expect(spool.holdReason()).toBeNull()
    expect(spool.totals().stores.clock.bytes).toBeGreaterThan(bound * 0.9)
    expect(spool.totals().stores.clock.bytes).toBeLessThan(bound)
    expect(spool.holds('clock', 'truck-8', 'truck-8')).toBe(true)
    expect(spool.holds('clock', 'truck-7', 'truck-7')).toBe(false)
    expect(spool.holds('quarantine', 'truck-8', 'truck-8')).toBe(false)
    await keepAll(spool, ['last'], () => ({ shelf, device: 'truck-7', client: 'truck-7', padding: 2000 }))
    expect(spool.holds('clock', 'truck-9', 'truck-9')).toBe(true)
    const full = { code: 'QUARANTINE_FULL', store: 'clock', bytesMax: bound }
    expect([...spool.states()]).toContainEqual(full)
    const take = (await collect(spool.keptMessages(shelf, null, { limit: 10 }))).map(({ id }) => id)
    await spool.exchange({ take, payloads: [], deadLetters: [], stateChanges: [] })
    expect(spool.isFull('clock')).toBe(false)
    expect([...spool.states()]).not.toContainEqual(full)
    expect(spool.totals().evicted.clock).toBe(0)
  })
})
