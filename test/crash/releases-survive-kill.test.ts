// Kills the real daemon while it releases messages from quarantine, because their device is listed now or because
// our clock was behind: between two slices and within one. The rules are checked on what the service received.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Status } from '../../src/ops/status-schema/status-schema.ts'
import { eventually } from '../support/eventually.ts'
import { statusUntil, type Daemon } from '../support/driver/daemon.ts'
import { Fleet } from '../support/driver/fleet.ts'
import { startKillable, type KillableOptions } from '../support/driver/killable.ts'
import { openService } from '../support/driver/service.ts'
import { newFolder } from '../support/folders.ts'
import type { ReleasePoint } from './kill-points.ts'
import { preparePower } from './power-cut.ts'

/** The device time of message `n` is `first + n * stepMs`. */
type Times = { first: number; stepMs: number }

const names = ['truck-1', 'truck-2'] as const

/** One daemon each; a slice is 100 messages of a device. */
const kills: { point: ReleasePoint; after: number; powerCut: boolean }[] = [
  { point: 'after-release', after: 2, powerCut: true },
  { point: 'before-release', after: 2, powerCut: false },
  { point: 'during-release', after: 1, powerCut: false },
  { point: 'after-release', after: 1, powerCut: true },
  { point: 'before-release', after: 1, powerCut: false },
]

type World = Awaited<ReturnType<typeof openWorld>>

async function openWorld({ first, stepMs }: Times, listed: readonly string[] = []) {
  const folder = await newFolder()
  const service = await openService()
  onTestFinished(() => service[Symbol.asyncDispose]())
  const setup = await preparePower(folder)
  const env = setup.kind === 'ready' ? setup.power.env : {}
  const [configPath, spoolPath] = [join(folder, 'gateway.yaml'), join(folder, 'spool')]
  await writeFile(
    configPath,
    `ingest: { broker: { listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true } } }
sources:
  - name: trucks
    topic: telemetry/v1/{device}
    map: { time: { path: ts, format: ms }, latitude: { path: lat }, longitude: { path: lon } }
defaults: { carrier: ACME, operator: OP1, asset_type: TRACTOR }
devices: { file: devices.csv, unknown: quarantine }
delivery: { base_url: "${service.url}", max_in_flight: 1, batch: { max_payloads: 40, linger: 5ms } }
clocks: { trust_local: true }
spool: { path: ./spool, max_bytes: 1GiB, min_free_bytes: 1MiB }
ops: { listen: "127.0.0.1:0" }
`,
  )
  const list = (names: readonly string[]) =>
    writeFile(join(folder, 'devices.csv'), ['device', ...names, ''].join('\n'))
  await list(listed)
  const tsOf = (n: number) => first + n * stepMs
  const truckNamed = (name: string) => {
    const payload = (n: number) => JSON.stringify({ ts: tsOf(n), lat: (n % 900) / 10, lon: 13.4 })
    const message = (n: number) => ({ topic: `telemetry/v1/${name}`, payload: payload(n) })
    return new Fleet([{ name, window: 1000, message }])
  }
  return {
    service,
    trucks: names.map(truckNamed),
    list,
    tsOf,
    start: (kill: KillableOptions['kill'] = null, clockBehindMs = 0) =>
      startKillable({ configPath, env, kill, clockBehindMs }),
    /** Where fsync cannot be recorded on this machine, the kill before it was all. */
    async cutPower() {
      if (setup.kind === 'ready') await setup.power.cut(spoolPath)
    },
  }
}

/** Resolves when all is acknowledged, or the daemon has ended. */
async function publishAll({ trucks }: World, daemon: Daemon, counts: readonly number[]): Promise<void> {
  const ready = await daemon.ready
  const publish = async (truck: Fleet, index: number) => {
    truck.grant(counts[index] ?? 0)
    if (ready === null) return
    let isOver = false
    const served = truck.serve(
      () => `mqtt://127.0.0.1:${ready.mqttPort}`,
      () => daemon.running && !isOver,
    )
    await Promise.race([truck.quiet(), daemon.ended])
    isOver = true
    truck.disconnect()
    await served
  }
  await Promise.all(trucks.map(publish))
}

test('killed 5 times during a release, twice by a power cut, the daemon sends each message once and in order', async () => {
  // All payloads are late, and our time is known from the start: they share one lane, which has one order. With
  // a time that becomes known between two starts, fresh payloads would go ahead of late ones.
  const world = await openWorld({ first: Date.UTC(2026, 0, 1), stepMs: 1000 })
  for (const [index, { point, after, powerCut }] of kills.entries()) {
    await using daemon = world.start({ point, after })
    await publishAll(world, daemon, index === 0 ? [900, 300] : [3, 3])
    // Nothing is released before.
    if (index === 0) await world.list(names)
    expect(await daemon.ended, `${point} ${after}:\n${daemon.log()}`).toBe('SIGKILL')
    if (powerCut) await world.cutPower()
  }
  await using daemon = world.start(null)
  await publishAll(world, daemon, [50, 50])
  const status = await emptied(daemon)
  await publishAll(world, daemon, [5, 5])
  const total = world.trucks.reduce((sum, { published }) => sum + published, 0)
  await eventually(() => world.service.arrivals.length >= total)
  expect(status.spool.deadLetters).toBe(0)
  // The service has payloads before the daemon has its answer and counts them as delivered.
  await statusUntil(daemon, isConserved, { what: 'a difference of 0', boundMs: 15_000 })
  expect(await daemon.stop()).toBe('exit 0')
  expectOnceInOrder(world)
})

test('killed 3 times while it corrects verdicts of a clock that was behind, the daemon sends each message once and in order', async () => {
  const hourMs = 3_600_000
  // Ahead of the clock that is behind, and late by the right one: all payloads share one lane, as above. With
  // present times, those released after the first success of a start would go ahead of those that waited.
  const times = { first: Date.now() - hourMs / 2, stepMs: 1 }
  const world = await openWorld(times, names)
  await using behind = world.start(null, hourMs)
  await publishAll(world, behind, [900, 300])
  expect(await behind.status()).toMatchObject({ spool: { quarantined: 1200 }, totals: { delivered: 0 } })
  await behind.kill()
  // From here on the clock is right, and no command is given.
  for (const point of ['after-release', 'before-release', 'during-release'] as const) {
    await using daemon = world.start({ point, after: 2 })
    expect(await daemon.ended, `${point}:\n${daemon.log()}`).toBe('SIGKILL')
    if (point === 'after-release') await world.cutPower()
  }
  await using daemon = world.start(null)
  await emptied(daemon)
  await publishAll(world, daemon, [5, 5])
  await eventually(() => world.service.arrivals.length >= 1210)
  const status = await daemon.status()
  expect(status?.spool).toMatchObject({ quarantined: 0, deadLetters: 0 })
  expect(status?.conditions.map(({ code }) => code)).toContain('CLOCK_STEPPED')
  expect(await daemon.stop()).toBe('exit 0')
  expectOnceInOrder(world)
})

function isConserved({ internals }: Status): boolean {
  const { messages, payloads } = internals.conservation
  return messages.difference === 0 && payloads.difference === 0
}

function emptied(daemon: Daemon): ReturnType<typeof statusUntil> {
  return statusUntil(
    daemon,
    ({ spool, totals, lanes }) =>
      spool.quarantined === 0 &&
      totals.released > 0 &&
      lanes.length > 0 &&
      lanes.every(({ pending, sealed }) => pending + sealed === 0),
    { what: 'an empty quarantine and an empty spool', boundMs: 15_000 },
  )
}

function expectOnceInOrder({ trucks, service, tsOf }: World): void {
  for (const [index, { published }] of trucks.entries()) {
    const times = service.arrivals.filter(({ device }) => device === names[index]).map(({ ts }) => ts)
    expect(times, names[index]).toEqual(Array.from({ length: published }, (_, n) => tsOf(n + 1)))
  }
}
