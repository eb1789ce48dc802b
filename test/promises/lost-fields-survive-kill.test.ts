// The daemon is killed: which fields the devices of a source had, and which are lost, is known to the next process.

import { readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newFolder } from '../support/folders.ts'
import { createDevice } from '../support/mqtt-device.ts'
import { startSpawnedDaemon, writeDaemonConfig, type SpawnedDaemon } from '../support/spawned-daemon.ts'

const start = Date.now() - 3_600_000

/** Messages of three devices, one after the other, until `holds`. */
async function sendUntil(daemon: SpawnedDaemon, holds: () => Promise<boolean>): Promise<void> {
  const names = ['truck-1', 'truck-2', 'truck-3']
  const devices = await Promise.all(
    names.map((clientId) => createDevice({ port: daemon.mqttPort, clientId })),
  )
  await Promise.all(devices.map((device) => device.connect()))
  for (let n = 1; !(await holds()); n += 1) {
    const payload = JSON.stringify({ t: start + n, x: 52.5, y: 13.4 + n / 10_000, o: 1000 })
    for (const { clientId, publish } of devices) publish({ topic: `a/${clientId}`, payload, messageId: n })
    await Promise.all(devices.map((device) => device.acked(n)))
  }
  for (const device of devices) device.destroy()
}

async function isLost({ url }: SpawnedDaemon): Promise<boolean> {
  const { conditions } = (await (await fetch(`${url}/status`)).json()) as { conditions: { code: string }[] }
  return conditions.some(({ code }) => code === 'FIELD_LOST')
}

/** What was learned is in a file of the database. */
async function isOnDisk(folder: string, text: string): Promise<boolean> {
  const files = await readdir(join(folder, 'spool'), { recursive: true, withFileTypes: true })
  const logs = files.filter((file) => file.name.endsWith('.log'))
  const contents = await Promise.all(
    logs.map(({ parentPath, name }) => readFile(join(parentPath, name), 'latin1')),
  )
  return contents.some((content) => content.includes(text))
}

test(
  'a field that is lost over a kill is noticed, and stays so over another one',
  { timeout: 60_000 },
  async () => {
    const folder = await newFolder()
    // Nothing listens there.
    const config = await writeDaemonConfig(folder, 'http://127.0.0.1:9')
    const text = await readFile(config, 'utf8')
    const withOdometer = text.replace('{ path: y } }', '{ path: y }, signals: [{ type: ODO, path: o }] }')
    await writeFile(config, withOdometer)
    const first = await startSpawnedDaemon(config)
    await sendUntil(first, () => isOnDisk(folder, '"truck-3"'))
    await sendUntil(first, () => isOnDisk(folder, '"fingerprint"'))
    await first.kill()
    await writeFile(config, withOdometer.replace('{ path: x }', '{ path: xx }'))
    const second = await startSpawnedDaemon(config)
    await sendUntil(second, () => isLost(second))
    await sendUntil(second, () => isOnDisk(folder, '"isByMapping":true'))
    await second.kill()
    const third = await startSpawnedDaemon(config)
    await sendUntil(third, () => isLost(third))
    await third.kill()
    expect(third.log()).toContain('"code":"FIELD_LOST"')
  },
)
