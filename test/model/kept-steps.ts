// kept-steps.ts: exchanges of kept messages and dead letters: released, remapped, put into the mapping state,
// or given up. Several exchanges may take the same entry at the same time, also by ids from long ago.

import type { ShelfName } from '../../src/domain/message.ts'
import type { Exchange } from '../../src/spool/spool.ts'
import { turn } from '../support/fake-clock.ts'
import { exchangeOf, keptNamed, deadLetterNamed } from '../support/spool-world.ts'
import { closeSome } from './state-steps.ts'
import { fail } from './rules.ts'
import { payloadOf, track, type Seen, type Shelves, type World } from './model-world.ts'

const names: readonly ShelfName[] = ['quarantine:a', 'deferred:phones']

export function shelfOf(message: string): ShelfName {
  return names[message.length % 3 === 0 ? 0 : 1] ?? 'quarantine:a'
}

export function createShelves(): Shelves {
  return { seen: [], taking: new Set(), exchanged: 0, refused: 0 }
}

export async function releaseSome(world: World): Promise<void> {
  const { random, spool, shelves } = world
  if (spool.holdReason() === 'store_lost') return
  const device = random.chance(0.3) ? 'even' : null
  const found: Seen[] = []
  for await (const { id, message } of spool.keptMessages(random.pick(names), device, {
    limit: 1 + random.below(4),
  }))
    found.push({ id, name: message.envelope.topic })
  shelves.seen.push(...found)
  // The first entries, or ids from an old list, as an operator may use them.
  if (random.chance(0.25) && shelves.seen.length > 0) exchangeAll(world, [random.pick(shelves.seen)], false)
  else exchangeAll(world, found, true)
}

export async function requeueSome(world: World): Promise<void> {
  const { random, spool, shelves } = world
  if (spool.holdReason() === 'store_lost') return
  const found: Seen[] = []
  const stage = random.pick(['mapping', 'delivery'] as const)
  for await (const { id, deadLetter: letter } of spool.deadLetters({ limit: 1 + random.below(3), stage }))
    found.push({ id, name: letter.device ?? letter.detail })
  shelves.seen.push(...found)
  exchangeAll(world, found, true)
}

function exchangeAll(world: World, entries: readonly Seen[], fresh: boolean): void {
  const { spool, random, shelves, mapping } = world
  if (entries.length === 0 || spool.holdReason() === 'store_lost') return
  const take = entries.map(({ id }) => id)
  const ours = fresh && take.every((id) => !shelves.taking.has(id))
  const changes: Partial<Exchange> = { take }
  const kind = random.below(5)
  if (kind === 0) changes.deadLetters = entries.map(({ name }) => deadLetterNamed(name).deadLetter)
  // An exchange that changes state must take entries that no other exchange takes.
  else if (kind === 1 && ours && mapping.restored)
    changes.stateChanges = entries.map(({ name }) => mapping.addLater(name))
  else if (kind === 2)
    changes.keptMessages = entries.map(({ name }) => keptNamed(name, { shelf: shelfOf(name) }).message)
  else changes.payloads = entries.map(({ name }) => payloadOf(name, { provider: 'a' }))
  for (const id of take) shelves.taking.add(id)
  const done = spool
    .exchange(exchangeOf(changes))
    .then(
      () => void (shelves.exchanged += 1),
      (error: unknown) => {
        shelves.refused += 1
        throw error
      },
    )
    .finally(() => {
      for (const id of take) shelves.taking.delete(id)
    })
  track(world, done, ['SPOOL_ENTRY_GONE'])
}

/** At the end every record closes and every kept message is released. */
export async function emptyAll(world: World): Promise<void> {
  const { spool, mapping } = world
  for (let round = 0; ; round += 1) {
    if (round > 200) fail('the shelves and the state never run empty')
    await Promise.all(world.running)
    while (mapping.openKeys().length > 0) closeSome(world)
    let left = 0
    for (const shelf of names) {
      for await (const { id, message } of spool.keptMessages(shelf, null, { limit: 100 })) {
        left += 1
        const payloads = [payloadOf(message.envelope.topic, { provider: 'a' })]
        await spool.exchange(exchangeOf({ take: [id], payloads }))
      }
    }
    await turn()
    if (left === 0 && mapping.openKeys().length === 0 && world.running.size === 0) return
  }
}
