import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { sandboxAccount } from '../../src/sandbox/sandbox.ts'
import { newFolder } from '../support/folders.ts'
import { createDevice } from '../support/mqtt-device.ts'
import { messageOf, topicOf } from '../support/pipeline-world.ts'
import { acceptAll, startScriptedService } from '../support/scripted-service.ts'

const root = resolve(import.meta.dirname, '../..')
/** Much less than the timeout of a submission, so that only the deadline can end a hanging one. */
const deadlineMs = 2000

type Daemon = {
  child: ChildProcess
  port: number
  ended: Promise<{ code: number | null; signal: string | null }>
  log: () => string
}

/** The real daemon as a process. */
async function startDaemon(folder: string, baseUrl: string): Promise<Daemon> {
  const path = join(folder, 'gateway.yaml')
  await writeFile(
    path,
    `
ingest: { broker: { listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true } } }
sources: [{ name: trucks, topic: "telemetry/v1/{device}", map: { time: { path: ts, format: ms }, latitude: { path: lat }, longitude: { path: lon } } }]
spool: { path: ./spool, min_free_bytes: 1MiB }
delivery: { base_url: "${baseUrl}", batch: { linger: 10ms }, timeout: 10m }
ops: { listen: "127.0.0.1:0", stop_deadline: ${deadlineMs}ms }
`,
  )
  const env = { ...process.env, AWS_ACCESS_KEY_ID: sandboxAccount.accessKeyId, AWS_SECRET_ACCESS_KEY: 'x' }
  const child = spawn(process.execPath, ['src/main.ts', 'run', '--config', path], { cwd: root, env })
  onTestFinished(() => void child.kill('SIGKILL'))
  const ended = once(child, 'exit').then(([code, signal]) => ({ code, signal }))
  let text = ''
  const port = await new Promise<number>((resolve, reject) => {
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString()
      const ready = text.split('\n').find((line) => line.includes('"gateway_ready"'))
      const url = /mqtt:\/\/127\.0\.0\.1:(\d+)/.exec(ready ?? '')
      if (url) resolve(Number(url[1]))
    })
    child.stderr.on('data', (chunk: Buffer) => {
      text += chunk.toString()
    })
    void ended.then(() => reject(new Error(`the daemon ended: ${text}`)))
  })
  return { child, port, ended, log: () => text }
}

async function publishOne(port: number): Promise<void> {
  const device = await createDevice({ port, clientId: 'truck-1' })
  onTestFinished(() => device.destroy())
  await device.connect()
  device.publish({ topic: topicOf('truck-1'), payload: messageOf(1), messageId: 1 })
  await device.acked(1)
}

describe('stop within the deadline', { timeout: 120_000 }, () => {
  test('SIGTERM ends it within the deadline with status 0 although the service hangs; the batch is sent again', async () => {
    const service = await startScriptedService(() => 'hang')
    onTestFinished(() => service.close())
    const folder = await newFolder()
    const daemon = await startDaemon(folder, service.url)
    await publishOne(daemon.port)
    await eventually(() => service.received.length > 0)
    daemon.child.kill('SIGTERM')
    expect(await daemon.ended).toEqual({ code: 0, signal: null })
    expect(daemon.log()).toContain('"gateway_stopped"')

    service.answer(acceptAll)
    await startDaemon(folder, service.url)
    await eventually(() => service.received.length > 1)
    expect(service.received[1]?.batchId).toBe(service.received[0]?.batchId)
  })

  test('a second signal ends it at once, and what was acknowledged is delivered after the next start', async () => {
    const service = await startScriptedService(() => 'hang')
    onTestFinished(() => service.close())
    const folder = await newFolder()
    const daemon = await startDaemon(folder, service.url)
    await publishOne(daemon.port)
    await eventually(() => service.received.length > 0)
    daemon.child.kill('SIGTERM')
    await eventually(() => daemon.log().includes('"gateway_stopping"'))
    // Signals within 0.3 s count as one: npm and the terminal may both send it.
    const again = setInterval(() => daemon.child.kill('SIGTERM'), 100)
    onTestFinished(() => clearInterval(again))
    expect(await daemon.ended).toEqual({ code: 143, signal: null })
    clearInterval(again)
    service.answer(acceptAll)
    const next = await startDaemon(folder, service.url)
    await eventually(() => service.received.length > 1)
    expect(next.log()).toContain('"spool_recovered"')
  })
})
