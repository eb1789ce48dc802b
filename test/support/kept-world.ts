// kept-world.ts: intake, quarantine release and deferred messages over a spool on real LevelDB, with a mapping that a
// test changes.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { onTestFinished } from 'vitest'
import { createIntake, type Intake } from '../../src/ingest/intake/intake.ts'
import { createQuarantineRelease, type QuarantineRelease } from '../../src/ingest/quarantine/quarantine.ts'
import {
  remapDeadLetters,
  type RemapReport,
  type RemapRequest,
} from '../../src/ingest/remap/dead-letter-remap.ts'
import { createDeferredMessages, type DeferredMessages } from '../../src/ingest/remap/deferred-messages.ts'
import { openMapping, type Mapper, type Mapping } from '../../src/mapping/mapping.ts'
import type { OurTime } from '../../src/domain/arrival.ts'
import type { Message } from '../../src/domain/message.ts'
import type { ShelfName } from '../../src/domain/kept-store.ts'
import type { GatewayEvent } from '../../src/domain/event.ts'
import { systemClock } from '../../src/std/clock.ts'
import { bodyOf } from './batch-body.ts'
import { newFolder } from './folders.ts'
import { configOf, messageOf, sender, truckSource } from './mapping-world.ts'
import { ourTimeOf } from './our-time.ts'
import { collect, openSpoolWorld, sealAll, type SpoolWorld } from './open-spool.ts'

export type KeptOptions = {
  sources?: readonly unknown[]
  /** Rows of the device table. */
  listed?: readonly string[]
  unknown?: 'accept' | 'quarantine' | 'ignore'
  /** The spool of another world, closed by then. */
  path?: string
}

export type KeptWorld = {
  world: SpoolWorld
  intake: Intake
  release: QuarantineRelease
  deferred: DeferredMessages
  ourTime: OurTime
  /** Offset of our clock, 0 at first; null: unknown. */
  setOffset(offsetMs: number | null): void
  events: GatewayEvent[]
  mapping: () => Mapping
  mapper: () => Mapper
  /** Publishes a message to the intake; resolves with its ack. */
  publish(
    topic: string,
    payload: unknown,
    more?: Pick<Partial<Message>, 'dup' | 'userProperties' | 'properties'>,
  ): Promise<unknown>
  /** Puts another mapping in force, as the daemon does. */
  change(options: Pick<KeptOptions, 'sources' | 'listed' | 'unknown'>): Promise<void>
  /** As a person who maps dead letters again. */
  remap(request?: Partial<RemapRequest>): Promise<RemapReport>
  /** Reasons of the dead letters, the oldest first. */
  deadReasons(): Promise<string[]>
  /** Reasons for which messages of a device are kept. */
  keptReasons(shelf: ShelfName, device: string): Promise<string[]>
  /** Seals what is pending: device and time of each payload, in order. */
  sent(): Promise<Sent[]>
  /** Stops without finishing anything, as a killed process does; only the spool is closed. */
  leave(): Promise<void>
}

export type Sent = { device: string; time: number; payload: Record<string, unknown> }

export async function openKeptWorld(options: KeptOptions = {}): Promise<KeptWorld> {
  const folder = await newFolder()
  let settings = options
  let offsetMs: number | null = 0
  const changes = { quarantineBytesMax: 64 * 1024 ** 2, bytesMax: 256 * 1024 ** 2 }
  const world = await openSpoolWorld({
    ...(options.path === undefined ? {} : { path: options.path }),
    changes,
  })
  const { spool, events } = world
  const emit = (event: GatewayEvent) => void events.push(event)
  let mapping = await open()
  let mapper = mapping.open()
  const ourTime = ourTimeOf(() => offsetMs)
  const deps = { spool, clock: systemClock, ourTime, emit }
  const release = createQuarantineRelease(deps, mapping)
  const deferred = createDeferredMessages({ ...deps, mapping: () => mapping, releaseOrder: release })
  const intake = createIntake(
    { ...deps, mapper, releaseOrder: release },
    { heldMessagesMax: 10_000, heldBytesMax: 64 * 1024 ** 2 },
  )
  const link = intake.links.connect(sender.clientId, sender.identity)
  let left = false
  const leave = async () => {
    if (left) return
    left = true
    intake.close()
    await Promise.all([release.stop(), deferred.stop()])
    await spool.close()
  }
  onTestFinished(leave)
  await release.findReleasable()
  await intake.restore()
  return {
    world,
    intake,
    release,
    deferred,
    ourTime,
    setOffset(next) {
      offsetMs = next
    },
    events,
    mapping: () => mapping,
    mapper: () => mapper,
    publish(topic, payload, more = {}) {
      return new Promise((resolve) => {
        // A message that is sent again keeps its packet identifier.
        const messageId = 1 + (crc32(`${topic} ${JSON.stringify(payload)}`) % 65_535)
        intake.accept({ ...messageOf(payload, { topic, sender, ...more }), link, messageId }, resolve)
      })
    },
    async change(next) {
      settings = { ...settings, ...next }
      const coming = await open()
      const comingMapper = coming.open()
      release.beginSwap(coming)
      await intake.swap(comingMapper)
      mapping = coming
      mapper = comingMapper
      release.endSwap(true)
    },
    remap(request = {}) {
      const everything = { reason: null, source: null, dryRun: false, ...request }
      return remapDeadLetters({ ...deps, mapping }, everything, new AbortController().signal)
    },
    async deadReasons() {
      return (await collect(spool.deadLetters({ limit: 5000 }))).map(({ deadLetter }) => deadLetter.reason)
    },
    async keptReasons(shelf, device) {
      const kept = await collect(spool.keptMessages(shelf, device, { limit: 1000 }))
      return kept.map(({ message }) => message.reason)
    },
    async sent() {
      const all: Sent[] = []
      await sealAll(spool)
      for (const batch of spool.batches()) {
        const loaded = await spool.load(batch)
        if (loaded.kind !== 'content') throw new Error('the batch is damaged')
        const body = JSON.parse(bodyOf(loaded.content).toString()) as { data: Record<string, unknown>[] }
        for (const payload of body.data) {
          const { id } = payload['deviceIdentifier'] as { id: string }
          all.push({ device: id, time: Number(payload['signalTimestamp']), payload })
        }
      }
      return all
    },
    leave,
  }

  async function open(): Promise<Mapping> {
    const { sources = [truckSource()], listed = [], unknown = 'quarantine' } = settings
    const file = join(folder, 'devices.csv')
    await writeFile(file, ['device', ...listed].join('\n'))
    const config = configOf(sources, {
      devices: { file, unknown },
      clocks: { on_future: 'quarantine', past_max: '3650d' },
    })
    return openMapping(config, { clockOffsetMs: () => offsetMs })
  }
}

/** A position of the source of `truckSource`, distinct by `n` and in the past. */
export function position(n: number): { ts: number; lat: number; lon: number } {
  return { ts: 1_763_600_000_000 + n * 1000, lat: 52.5 + (n % 1000) / 10_000, lon: 13.4 }
}

export function topicOf(device: string): string {
  return `telemetry/v1/${device}`
}
