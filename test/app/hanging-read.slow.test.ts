// A thread that hangs in the disk ends with its process: process.exit() would wait for it.

import { execFileSync } from 'node:child_process'
import { constants } from 'node:fs'
import { open, readFile, writeFile, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { newFolder } from '../support/folders.ts'
import { createDevice } from '../support/mqtt-device.ts'
import { startSpawnedDaemon, writeDaemonConfig } from '../support/spawned-daemon.ts'

test('a daemon whose read of a file hangs ends by SIGTERM', async () => {
  const folder = await newFolder()
  const path = await writeDaemonConfig(folder, 'http://127.0.0.1:1')
  const shared = join(folder, 'credentials')
  execFileSync('mkfifo', [shared])
  const text = await readFile(path, 'utf8')
  await writeFile(
    path,
    text.replace('delivery: {', 'delivery: { credentials: { source: chain, profile: fleet },'),
  )
  const none = { AWS_ACCESS_KEY_ID: undefined, AWS_SECRET_ACCESS_KEY: undefined }
  const env = { ...none, AWS_SHARED_CREDENTIALS_FILE: shared, AWS_CONFIG_FILE: join(folder, 'none') }
  const daemon = await startSpawnedDaemon(path, { env })
  onTestFinished(() => void daemon.kill())
  const device = await createDevice({ port: daemon.mqttPort, clientId: 'truck' })
  onTestFinished(() => device.destroy())
  await device.connect()
  device.publish({ topic: 'a/truck', payload: `{"t":${Date.now()},"x":1,"y":1}`, messageId: 1 })
  // Opens as soon as the daemon reads. While it is open and empty, the read hangs.
  let writer: FileHandle | null = null
  await eventually(async () => {
    writer = await open(shared, constants.O_WRONLY | constants.O_NONBLOCK).catch(() => null)
    return writer !== null
  })
  onTestFinished(() => writer?.close())
  // It waits for the submission, which is given up after 30 s.
  expect(await daemon.stop()).toEqual([0, null])
})
