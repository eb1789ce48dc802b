import { readFile, writeFile } from 'node:fs/promises'
import { setTimeout as pauseMs } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { newFolder } from '../support/folders.ts'
import { createDevice } from '../support/mqtt-device.ts'
import { acceptAll, startScriptedService } from '../support/scripted-service.ts'
import { startSpawnedDaemon, writeDaemonConfig, type SpawnedDaemon } from '../support/spawned-daemon.ts'

/** Much less than the timeout of a submission, so that only the deadline can end a hanging one. */
const deadlineMs = 2000

/** One message of a device is in a submission that hangs. */
async function startWithHanging(): Promise<{
  service: Awaited<ReturnType<typeof startScriptedService>>
  daemon: SpawnedDaemon
  restart(): Promise<SpawnedDaemon>
}> {
  const service = await startScriptedService(() => 'hang')
  onTestFinished(() => service.close())
  const config = await writeDaemonConfig(await newFolder(), service.url)
  const options = ['ops: { listen: "127.0.0.1:0"', 'linger: 5ms }'] as const
  const text = (await readFile(config, 'utf8'))
    .replace(options[0], `${options[0]}, stop_deadline: ${deadlineMs}ms`)
    .replace(options[1], `${options[1]}, timeout: 10m`)
  await writeFile(config, text)
  const daemon = await startSpawnedDaemon(config)
  await publishOne(daemon.mqttPort)
  await eventually(() => service.received.length > 0)
  return { service, daemon, restart: () => startSpawnedDaemon(config) }
}

async function publishOne(port: number): Promise<void> {
  const device = await createDevice({ port, clientId: 'truck-1' })
  onTestFinished(() => device.destroy())
  await device.connect()
  device.publish({
    topic: 'a/truck-1',
    payload: JSON.stringify({ t: Date.now(), x: 52, y: 13 }),
    messageId: 1,
  })
  await device.acked(1)
}

describe('stop within the deadline', { timeout: 120_000 }, () => {
  test('SIGTERM ends it within the deadline with status 0 although the service hangs; the batch is sent again', async () => {
    const { service, daemon, restart } = await startWithHanging()
    expect(await daemon.stop()).toEqual([0, null])
    expect(daemon.log()).toContain('"gateway_stopped"')

    service.answer(acceptAll)
    await restart()
    await eventually(() => service.received.length > 1)
    expect(service.received[1]?.batchId).toBe(service.received[0]?.batchId)
  })

  test('a second signal ends it at once, and what was acknowledged is delivered after the next start', async () => {
    const { service, daemon, restart } = await startWithHanging()
    void daemon.stop()
    await eventually(() => daemon.log().includes('"gateway_stopping"'))
    // Signals within 0.3 s count as one: npm and the terminal may both send it.
    await pauseMs(400)
    expect(await daemon.stop()).toEqual([143, null])
    service.answer(acceptAll)
    const next = await restart()
    await eventually(() => service.received.length > 1)
    expect(next.log()).toContain('"spool_recovered"')
  })
})
