// The daemon as a process on a disk that hangs: a library that is loaded before it delays fsync, fdatasync, rename
// and statfs, those of LevelDB, too (fsync-recorder.c).

import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startHttpReceiver } from '../support/alert-world.ts'
import { eventually } from '../support/eventually.ts'
import { newFolder } from '../support/folders.ts'
import { createDevice } from '../support/mqtt-device.ts'
import { messageOf, startSandbox, topicOf } from '../support/pipeline-world.ts'
import { spawnCommand, startSpawnedDaemon, type SpawnedDaemon } from '../support/spawned-daemon.ts'
import { compileRecorder } from './power-cut.ts'

const libraryFolder = await newFolder(() => undefined)
const library = await compileRecorder(libraryFolder).catch(() => null)

const deadlineMs = 4000

type World = {
  daemon: SpawnedDaemon
  /** Each call to the disk takes so long from now on; null: no longer than usual. */
  hold(ms: number | null): Promise<void>
  device: Awaited<ReturnType<typeof createDevice>>
  alerts: string[]
}

async function startWorld(): Promise<World> {
  const folder = await newFolder()
  const { url } = await startSandbox()
  const receiver = await startHttpReceiver()
  const config = join(folder, 'gateway.yaml')
  await writeFile(
    config,
    `
ingest: { broker: { listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true } } }
sources: [{ name: trucks, topic: "telemetry/v1/{device}", map: { time: { path: ts, format: ms }, latitude: { path: lat }, longitude: { path: lon } } }]
spool: { path: ./spool, min_free_bytes: 1MiB }
delivery: { base_url: "${url}", batch: { linger: 10ms } }
ops: { listen: "127.0.0.1:0", stop_deadline: ${deadlineMs}ms }
alerts: { wait: 1s, receivers: [{ name: duty, type: webhook, url: "${receiver.url.replace('127.0.0.1', 'localhost')}" }] }
`,
  )
  const holdFile = join(folder, 'hold')
  // Its cache of compiled code is renamed when the process ends.
  const env = { LD_PRELOAD: library ?? '', FSYNC_HOLD: holdFile, NODE_DISABLE_COMPILE_CACHE: '1' }
  const daemon = await startSpawnedDaemon(config, { env })
  const device = await createDevice({ port: daemon.mqttPort, clientId: 'truck-1' })
  onTestFinished(() => device.destroy())
  await device.connect()
  device.publish({ topic: topicOf('truck-1'), payload: messageOf(1), messageId: 1 })
  await device.acked(1)
  return {
    daemon,
    device,
    hold: (ms) => (ms === null ? rm(holdFile) : writeFile(holdFile, `${ms}`)),
    get alerts() {
      return receiver.requests.map(({ body }) => body)
    },
  }
}

type Status = { verdict: string; conditions: { code: string; severity: string; what: string }[] }

async function statusOf({ daemon }: World): Promise<Status> {
  const { verdict, conditions } = (await (await fetch(`${daemon.url}/status`)).json()) as Status
  return { verdict, conditions: conditions.filter(({ severity }) => severity !== 'info') }
}

async function codesOf(world: World): Promise<string[]> {
  return (await statusOf(world)).conditions.map(({ code }) => code)
}

const readiness = async ({ daemon }: World) => (await fetch(`${daemon.url}/readyz`)).status
const forever = 3_600_000

describe.skipIf(library === null)('a disk that hangs (needs cc)', { timeout: 120_000 }, () => {
  test('gives no acknowledgement, a condition, an alert and /readyz 503 within 30 s; SIGTERM ends the daemon in spite of it', async () => {
    const world = await startWorld()
    await world.hold(forever)
    const heldAtMs = performance.now()
    const since = () => performance.now() - heldAtMs
    // Its line in the audit log hangs as well, in one more thread.
    spawnCommand(['probe', '--url', world.daemon.control])
    world.device.publish({ topic: topicOf('truck-1'), payload: messageOf(2), messageId: 2 })
    await eventually(async () => (await codesOf(world)).includes('SPOOL_WRITE_HANGING'))
    expect(since()).toBeLessThan(30_000)
    expect(await readiness(world)).toBe(503)
    expect((await statusOf(world)).verdict).toBe('not_receiving')
    await eventually(() => world.alerts.some((body) => body.includes('SPOOL_WRITE_HANGING')))
    await eventually(() => since() > 35_000)
    expect(await codesOf(world)).toEqual(['SPOOL_WRITE_HANGING'])
    expect(world.device.acks).toHaveLength(1)
    const stoppedMs = performance.now()
    expect(await world.daemon.stop()).toEqual([null, 'SIGKILL'])
    const tookMs = Math.round(performance.now() - stoppedMs)
    expect(tookMs).toBeLessThan(deadlineMs + 4000)
    expect(world.daemon.log()).toContain('"gateway_stop_overdue"')
  })

  test('a second signal ends the daemon at once', async () => {
    const world = await startWorld()
    await world.hold(forever)
    world.device.publish({ topic: topicOf('truck-1'), payload: messageOf(2), messageId: 2 })
    await eventually(async () => (await codesOf(world)).includes('SPOOL_WRITE_HANGING'))
    const stopped = world.daemon.stop()
    await eventually(() => world.daemon.log().includes('"gateway_stopping"'))
    await new Promise((resolve) => setTimeout(resolve, 400))
    const secondMs = performance.now()
    await world.daemon.stop()
    expect(await stopped).toEqual([143, null])
    expect(performance.now() - secondMs).toBeLessThan(2000)
  })

  test('where each call takes 5 s, SPOOL_WRITE_SLOW says so, and it goes when the disk is fast again', async () => {
    const world = await startWorld()
    await world.hold(5000)
    world.device.publish({ topic: topicOf('truck-1'), payload: messageOf(2), messageId: 2 })
    await eventually(async () => (await codesOf(world)).includes('SPOOL_WRITE_SLOW'))
    await world.device.acked(2)
    expect((await statusOf(world)).conditions).toMatchObject([
      { what: expect.stringMatching(/ in 100 takes [5-9]/) as unknown },
    ])
    await world.hold(null)
    await eventually(async () => (await codesOf(world)).length === 0)
    expect(await world.daemon.stop()).toEqual([0, null])
  })
})
