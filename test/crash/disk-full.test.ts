// A disk that is full is the worst that can happen to the store: LevelDB can be damaged for good by it. The watermark
// keeps it from there; where somebody else fills the disk, the store is closed and waits for room.

import { statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { createRandom } from '../support/random.ts'
import type { Daemon } from './child.ts'
import { judge } from './judge.ts'
import { mountSmallDisk, type SmallDisk } from './small-disk.ts'
import { openCrashWorld, type CrashWorld } from './world.ts'

const sizeMiB = 48
const small = { max_bytes: '256MiB', min_free_bytes: '25MiB' }
const ballastMiB = 16
const timeout = 60_000

const trial = await mountSmallDisk(1)
const mayMount = trial !== null
await trial?.[Symbol.asyncDispose]()

type Tried = { world: CrashWorld; daemon: Daemon; served: Promise<void> }

/** A gateway on a disk of its own, and devices that publish as fast as they are acknowledged. */
async function openDiskWorld(): Promise<Tried & { disk: SmallDisk }> {
  const disk = await mountSmallDisk(sizeMiB)
  if (disk === null) throw new Error('a small disk could be mounted a moment ago')
  onTestFinished(() => disk[Symbol.asyncDispose]())
  const world = await openCrashWorld({
    random: createRandom(1),
    spoolPath: `${disk.path}/spool`,
    spool: small,
    window: 8,
  })
  onTestFinished(() => world[Symbol.asyncDispose]())
  const daemon = world.start()
  onTestFinished(() => daemon[Symbol.asyncDispose]())
  const ready = await daemon.ready
  if (ready === null) throw new Error(daemon.log())
  const served = world.fleet.serve(ready.mqttPort, () => daemon.running)
  world.fleet.onAck(() => world.fleet.grant(1))
  world.fleet.grant(100)
  return { world, disk, daemon, served }
}

/** The same process goes on: it takes messages in, delivers all that it acknowledged and stops in order. */
async function violationsAfter({ world, daemon, served }: Tried): Promise<string[]> {
  world.fleet.grant(500)
  await world.finishWith(daemon)
  await served
  return (await judge(world)).violations
}

describe.skipIf(!mayMount)('on a small disk (skipped where nothing may be mounted)', () => {
  test(
    'acks are held before the disk is full, and given again when the service has taken the backlog',
    { timeout },
    async () => {
      const tried = await openDiskWorld()
      const { world } = tried
      world.service.setDown(true)
      const first = await world.eventOf('spool_held disk_low', 'spool_held spool_full', 'store_lost')
      expect(first).toBe('spool_held disk_low')
      world.fleet.onAck(null)
      const resumed = world.eventOf('spool_resumed')
      world.service.setDown(false)
      await resumed
      expect(await violationsAfter(tried)).toEqual([])
      expect(world.events.get('store_lost')).toBeUndefined()
    },
  )

  test(
    'when somebody else fills the disk to the last byte nothing acknowledged is lost, and all goes on when he is gone',
    { timeout },
    async () => {
      const tried = await openDiskWorld()
      const { world, disk } = tried
      const noticed = world.eventOf('store_lost', 'spool_held disk_low')
      disk.fill()
      // The ballast makes room to open it again; what comes in is held all the same.
      if ((await noticed) === 'store_lost') await world.eventOf('store_reopened')
      world.fleet.onAck(null)
      const resumed = world.eventOf('spool_resumed')
      await disk.clear()
      await resumed
      await eventually(() => ballastBytes(disk) === ballastMiB * 1024 ** 2)
      expect(await violationsAfter(tried)).toEqual([])
    },
  )

  test(
    'when he takes the room of the ballast as well, the store waits closed until there is room to open it',
    // Whether he is back before the store is opened is a race that a busy machine may lose for him.
    { timeout, retry: 2 },
    async () => {
      const tried = await openDiskWorld()
      const { world, disk } = tried
      const lost = world.eventOf('store_lost')
      const failed = world.eventOf('store_reopen_failed')
      disk.fill()
      await lost
      world.fleet.onAck(null)
      const refill = setInterval(() => disk.fill(), 5)
      onTestFinished(() => clearInterval(refill))
      await failed
      clearInterval(refill)
      const resumed = world.eventOf('spool_resumed')
      await disk.clear()
      await resumed
      await eventually(() => ballastBytes(disk) === ballastMiB * 1024 ** 2)
      expect(await violationsAfter(tried)).toEqual([])
    },
  )
})

function ballastBytes({ path }: SmallDisk): number {
  return statSync(join(path, 'spool', 'ballast'), { throwIfNoEntry: false })?.size ?? 0
}

test(
  'a store whose disk is full four times loses nothing, and the same process goes on',
  { timeout },
  async () => {
    await using world = await openCrashWorld({ random: createRandom(2) })
    await using daemon = world.start({ enospc: { at: 40, times: 4 } })
    const ready = await daemon.ready
    const served = world.fleet.serve(ready?.mqttPort ?? 0, () => daemon.running)
    world.fleet.onAck(() => world.fleet.grant(1))
    world.fleet.grant(100)
    for (let losses = 0; losses < 4; losses += 1) await world.eventOf('store_reopened')
    world.fleet.onAck(null)
    expect(await violationsAfter({ world, daemon, served })).toEqual([])
  },
)
