// A full disk can damage LevelDB for good. The low-space mark prevents that. When another program fills the
// disk, the store is closed and waits for free space.

import { statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { createRandom } from '../support/random.ts'
import type { Daemon } from '../support/driver/daemon.ts'
import { mountSmallDisk, type SmallDisk } from './small-disk.ts'
import { openCrashWorld, type CrashWorld } from './crash-world.ts'

const sizeMiB = 48
const small = { max_bytes: '256MiB', min_free_bytes: '25MiB' }
const ballastMiB = 16
/** Long, for a busy machine. */
const timeout = 180_000

const trial = await mountSmallDisk(1)
const mayMount = trial !== null
await trial?.[Symbol.asyncDispose]()

type Tried = { world: CrashWorld; daemon: Daemon }

/** A gateway on its own disk, and devices that publish as fast as they are acknowledged. */
async function openDiskWorld(): Promise<Tried & { disk: SmallDisk }> {
  const disk = await mountSmallDisk(sizeMiB)
  if (disk === null) throw new Error('a small disk could be mounted a moment ago')
  onTestFinished(() => disk[Symbol.asyncDispose]())
  const world = await openCrashWorld({
    random: createRandom(1),
    spoolPath: `${disk.path}/spool`,
    spool: small,
  })
  onTestFinished(() => world[Symbol.asyncDispose]())
  const daemon = world.start()
  onTestFinished(() => daemon[Symbol.asyncDispose]())
  // Before the disk is full: the store is lost, and not refused at the start.
  if ((await daemon.ready) === null) throw new Error(daemon.log())
  // It ends with the daemon.
  void world.serve(daemon)
  publishSteadily(world)
  return { world, disk, daemon }
}

function publishSteadily({ fleet }: CrashWorld): void {
  fleet.onAck = () => fleet.grant(1)
  fleet.grant(100)
}

/** The same process continues: it accepts messages, delivers all acknowledged data and stops in order. */
async function violationsAfter({ world, daemon }: Tried): Promise<string[]> {
  world.fleet.grant(500)
  return (await world.finish(daemon)).violations
}

describe.skipIf(!mayMount)('on a small disk (skipped where nothing may be mounted)', () => {
  test(
    'acks are held before the disk is full, and resume when the service has accepted the backlog',
    { timeout },
    async () => {
      const tried = await openDiskWorld()
      const { world } = tried
      world.setDown(true)
      expect(await world.eventOf('spool_held', 'store_lost')).toMatchObject({ reason: 'disk_low' })
      world.fleet.onAck = null
      const resumed = world.eventOf('spool_resumed')
      world.setDown(false)
      await resumed
      expect(await violationsAfter(tried)).toEqual([])
      expect(world.events).not.toContain('store_lost')
    },
  )

  test(
    'after another program filled the disk, nothing acknowledged is lost, and the gateway resumes',
    { timeout },
    async () => {
      const tried = await openDiskWorld()
      const { world, disk } = tried
      const noticed = world.eventOf('store_lost', 'spool_held')
      disk.fill()
      // The ballast frees space to open the store again. Acks of new messages are still held.
      if ((await noticed).event === 'store_lost') await world.eventOf('store_reopened')
      world.fleet.onAck = null
      const resumed = world.eventOf('spool_resumed')
      await disk.clear()
      await resumed
      await eventually(() => ballastBytes(disk) === ballastMiB * 1024 ** 2)
      expect(await violationsAfter(tried)).toEqual([])
    },
  )

  test(
    'after another program filled the space of the ballast too, the store stays closed until it can be opened',
    // Whether the other program fills the space before the store opens is a race.
    { timeout, retry: 2 },
    async () => {
      const tried = await openDiskWorld()
      const { world, disk } = tried
      const lost = world.eventOf('store_lost')
      const failed = world.eventOf('store_reopen_failed')
      disk.fill()
      await lost
      world.fleet.onAck = null
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
