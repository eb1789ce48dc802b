// open-spool.ts: a spool on real LevelDB in its own folder, with its clock, events and disk for the test.

import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { GatewayEvent } from '../../src/domain/event.ts'
import type { ShelfName } from '../../src/domain/kept-store.ts'
import { openSpool, type Batch, type IsLate, type Spool, type SpoolOptions } from '../../src/spool/spool.ts'
import {
  checkInThread,
  openLevelStore,
  realDisk,
  type Disk,
  type OpenStore,
} from '../../src/storage/storage.ts'
import { bodyOf } from './batch-body.ts'
import { createFakeClock, type FakeClock } from './fake-clock.ts'
import { newFolder } from './folders.ts'
import { deadLetterNamed, payloadNamed, smallOptions } from './spool-world.ts'

export type SpoolWorld = {
  spool: Spool
  clock: FakeClock
  events: GatewayEvent[]
  path: string
  eventsOf<Kind extends GatewayEvent['kind']>(kind: Kind): Extract<GatewayEvent, { kind: Kind }>[]
  /** Appends one message of one payload; resolves with its ack's fault, null when it is durable. */
  publish(name: string, options?: { padding?: number }): Promise<unknown>
  /** Closes the spool and opens it again in the same folder. */
  reopen(): Promise<SpoolWorld>
}

export type WorldOptions = {
  path?: string
  openStore?: OpenStore
  disk?: Disk
  clock?: FakeClock
  changes?: Partial<SpoolOptions>
  isLate?: IsLate
  /** The files are checked before they are opened, as the daemon does. */
  checks?: boolean
  /** The test lets it crash, so it cannot be closed. */
  crashes?: boolean
}

let ids = 0

export async function openSpoolWorld(options: WorldOptions = {}): Promise<SpoolWorld> {
  const path = options.path ?? join(await newFolder(), 'spool')
  const clock = options.clock ?? createFakeClock()
  const events: GatewayEvent[] = []
  const spool = await openSpool(
    {
      clock,
      newId: () => `00000000-0000-4000-8000-${String((ids += 1)).padStart(12, '0')}`,
      random: Math.random,
      emit: (event) => void events.push(event),
      openStore: options.openStore ?? openLevelStore,
      disk: options.disk ?? realDisk,
      isLate: options.isLate ?? (() => false),
      ...(options.checks === true && { checkStore: checkInThread }),
    },
    smallOptions(path, options.changes),
  )
  if (options.crashes !== true) onTestFinished(() => spool.close())
  return {
    spool,
    clock,
    events,
    path,
    eventsOf: (kind) => events.filter((event) => event.kind === kind) as never,
    publish: (name, { padding } = {}) => {
      spool.append(payloadNamed(name, { padding: padding ?? 0 }))
      return new Promise((resolve) => {
        spool.endMessage(resolve)
      })
    },
    async reopen() {
      await spool.close()
      return openSpoolWorld({ ...options, path, clock })
    },
  }
}

/** Seals everything of the first live lane with wide limits. */
export async function sealAll(spool: Spool): Promise<Batch[]> {
  const batches: Batch[] = []
  for (const lane of spool.lanes()) {
    for (;;) {
      const batch = await spool.seal(lane.id, { payloadsMax: 10_000, bodyBytesMax: 64 * 1024 ** 2 })
      if (batch === null) break
      batches.push(batch)
    }
  }
  return batches
}

/** All batches of a lane, those that were sealed before included. */
export async function sealLane(spool: Spool, id: Batch['lane']): Promise<Batch[]> {
  while ((await spool.seal(id, { payloadsMax: 10_000, bodyBytesMax: 64 * 1024 ** 2 })) !== null);
  return spool.batches().filter(({ lane }) => lane === id)
}

/** What is open in each lane, as `role: names`; sealed on the way. */
export async function rolesIn(spool: Spool): Promise<string[]> {
  const found: string[] = []
  for (const { id, role } of spool.lanes()) {
    const names: string[] = []
    for (const batch of await sealLane(spool, id)) names.push(...(await namesIn(spool, batch)))
    found.push(`${role.kind}: ${names.join(' ')}`.trim())
  }
  return found
}

export async function publishAll(
  { publish }: Pick<SpoolWorld, 'publish'>,
  names: Iterable<string>,
): Promise<void> {
  for (const name of names) if ((await publish(name)) !== null) throw new Error(`${name} was refused`)
}

/** Delivers everything that can be read; resolves with the names of the devices in order. */
export async function deliverAll(spool: Spool): Promise<string[]> {
  const names: string[] = []
  await sealAll(spool)
  for (const batch of spool.batches()) {
    const loaded = await spool.load(batch)
    for (const left of loaded.kind === 'content' ? [batch] : loaded.batches) {
      names.push(...(await namesIn(spool, left)))
      await spool.settle(left, { payloads: 'all delivered', requestId: null })
    }
  }
  return names
}

export async function namesIn(spool: Spool, batch: Batch): Promise<string[]> {
  const loaded = await spool.load(batch)
  if (loaded.kind !== 'content') throw new Error('the batch is damaged')
  const body = JSON.parse(bodyOf(loaded.content).toString()) as {
    data: { deviceIdentifier: { id: string } }[]
  }
  return body.data.map(({ deviceIdentifier }) => deviceIdentifier.id)
}

/** Advances the clock by seconds until `holds`, for work that uses timers and the real disk. */
export async function passTimeUntil(clock: FakeClock, holds: () => boolean): Promise<void> {
  while (!holds()) await clock.advance(1000)
}

/** Ends the message; resolves with its ack's fault, null when it is durable. */
export function ended(spool: Spool): Promise<unknown> {
  return new Promise((resolve) => {
    spool.endMessage(resolve)
  })
}

export async function collect<Entry>(entries: AsyncIterable<Entry>): Promise<Entry[]> {
  const all: Entry[] = []
  for await (const entry of entries) all.push(entry)
  return all
}

/** Topics of the messages on a shelf, which is what keptNamed puts their names into. */
export async function keptIn(spool: Spool, shelf: ShelfName, device: string | null = null) {
  const entries = await collect(spool.keptMessages(shelf, device, { limit: 10_000 }))
  return entries.map(({ message }) => message.envelope.topic)
}

/** The state of the mapping as text. */
export async function statesIn(spool: Spool): Promise<Record<string, string>> {
  const entries = await collect(spool.stateEntries())
  return Object.fromEntries(entries.map(({ key, value }) => [key, value.toString()]))
}

/** Changes a record while the spool is closed, as a faulty disk does, and opens it again. */
export async function reopenTampered(
  world: SpoolWorld,
  key: Buffer,
  change: (value: Buffer) => Buffer | null,
): Promise<SpoolWorld> {
  await world.spool.close()
  const store = await openLevelStore(join(world.path, 'store'))
  const value = await store.get(key)
  if (value === undefined) throw new Error('there is no such record')
  const changed = change(Buffer.from(value))
  await store.write([changed === null ? { type: 'del', key } : { type: 'put', key, value: changed }], {
    sync: true,
  })
  await store.close()
  return world.reopen()
}

export function flipLastByte(value: Buffer): Buffer {
  const changed = Buffer.from(value)
  changed[changed.length - 1] = (changed[changed.length - 1] ?? 0) ^ 1
  return changed
}

/** Adds a dead letter for each name; resolves when they are durable. */
export async function addDeadLetters(
  spool: Spool,
  names: readonly string[],
  reason = 'NOT_JSON',
): Promise<void> {
  for (const name of names) {
    const { deadLetter } = deadLetterNamed(name)
    spool.addDeadLetter({ ...deadLetter, reason })
    spool.endMessage(null)
  }
  await ended(spool)
}

export async function deadLettersIn(
  spool: Spool,
  filter: { stage?: 'mapping' | 'delivery'; reason?: string } = {},
) {
  return collect(spool.deadLetters({ limit: 100, ...filter }))
}
