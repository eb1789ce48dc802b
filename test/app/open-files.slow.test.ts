// The real daemon where the system allows few open files, and strangers that connect and stay silent.

import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readdir, writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { configText, positionMap } from '../support/config-text.ts'
import { startSandbox, messageOf } from '../support/pipeline-world.ts'
import { newFolder } from '../support/folders.ts'
import { createDevice, type Device } from '../support/mqtt-device.ts'
import { eventually } from '../support/eventually.ts'
import { spawnCommand, startSpawnedDaemon } from '../support/spawned-daemon.ts'

/** Opens connections that send nothing, 250 of each address. */
async function openSilent(port: number, count: number): Promise<Socket[]> {
  const sockets: Socket[] = []
  onTestFinished(() => sockets.forEach((socket) => socket.destroy()))
  const opened = Array.from({ length: count }, (_, index) => {
    const socket = connect({
      port,
      host: '127.0.0.1',
      localAddress: `127.0.1.${1 + Math.floor(index / 250)}`,
    })
    sockets.push(socket)
    // Most are closed to make room for others.
    socket.on('error', () => socket.destroy()).resume()
    return once(socket, 'connect')
  })
  await Promise.all(opened)
  return sockets
}

async function openFilesOf(pid: number): Promise<number> {
  return (await readdir(`/proc/${pid}/fd`)).length
}

async function startDaemon(more: { by?: readonly string[] } = {}) {
  const { url, sandbox } = await startSandbox()
  const config = join(await newFolder(), 'gateway.yaml')
  const limits =
    '{ max_connects_per_s: 100000, max_connects_per_address_per_s: 100000, max_unauthenticated: 10000, connect_timeout: 5m }'
  const text = configText({
    broker: `{ listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true }, limits: ${limits} }`,
    sources: `[{ name: a, topic: "a/{device}", map: ${positionMap} }]`,
    spool: '{ path: ./spool, allow_in_memory: true, max_bytes: 32MiB, min_free_bytes: 1MiB }',
    delivery: 'batch: { linger: 5ms }',
  })
  await writeFile(config, text(url))
  const daemon = await startSpawnedDaemon(config, more)
  let sent = 0
  return {
    ...daemon,
    /** Publishes messages, until the service has accepted all. Rejects where the daemon ends meanwhile. */
    async delivers(device: Device, count: number): Promise<void> {
      const goal = sandbox.stats().payloadsAccepted + count
      const accepted = async () => {
        for (let n = 1; n <= count; n += 1) {
          sent += 1
          device.publish({ topic: `a/${device.clientId}`, payload: messageOf(sent), messageId: sent })
          await device.acked(device.acks.length + 1)
        }
        await eventually(() => sandbox.stats().payloadsAccepted >= goal)
      }
      const ended = daemon.ended.then(() => Promise.reject(new Error('the daemon ended')))
      await Promise.race([accepted(), ended])
    },
    async connected(clientId: string): Promise<Device> {
      const device = await createDevice({ port: daemon.mqttPort, clientId })
      await device.connect()
      return device
    },
  }
}

const statusAt = (address: string) => spawnCommand(['status', '--url', address]).ended

test(
  'at 1,024 open files, 1,500 silent connections leave files for the work, and devices connect',
  { timeout: 90_000 },
  async () => {
    const daemon = await startDaemon({ by: ['/bin/sh', '-c', 'ulimit -n 1024; exec "$@"', 'sh'] })
    expect(daemon.log()).toMatch(
      /The limit of 1024 open files leaves \d+ connections of devices.*LimitNOFILE=/,
    )
    const early = await daemon.connected('truck-1')
    const strangers = await openSilent(daemon.mqttPort, 1500)
    await daemon.delivers(early, 20)
    expect(await openFilesOf(daemon.pid)).toBeLessThan(600)
    expect(await statusAt(daemon.url)).toMatch(/^exit [01]\n[^]*CONNECTIONS_LIMITED/)
    expect(await statusAt(daemon.control)).toMatch(/^exit [01]\n/)
    expect(await (await fetch(`${daemon.url}/metrics`)).text()).toMatch(/reason="max_connections"\} \d{3,}/)
    // Also while the strangers are there.
    await daemon.delivers(await daemon.connected('truck-2'), 1)
    for (const socket of strangers) socket.destroy()
    await daemon.delivers(await daemon.connected('truck-3'), 1)
    expect(daemon.log()).not.toContain('EMFILE')
    expect(await daemon.stop()).toEqual([0, null])
  },
)

test(
  'a daemon without a free file stays up, and accepts connections when files are free again',
  { timeout: 60_000 },
  async () => {
    const daemon = await startDaemon()
    const limitFiles = async (count: number) =>
      promisify(execFile)('prlimit', ['--pid', String(daemon.pid), `--nofile=${count}:`])
    const early = await daemon.connected('truck-1')
    await daemon.delivers(early, 1)
    await limitFiles((await openFilesOf(daemon.pid)) + 20)
    const strangers = await openSilent(daemon.mqttPort, 200)
    await eventually(() => strangers.filter(({ destroyed }) => destroyed).length > 100)
    early.publish({ topic: 'a/truck-1', payload: messageOf(100), messageId: 100 })
    await early.acked(2)
    await limitFiles(4096)
    await daemon.delivers(await daemon.connected('truck-2'), 1)
    expect((await fetch(`${daemon.url}/metrics`)).status).toBe(200)
    expect(await daemon.stop()).toEqual([0, null])
  },
)

test('what the daemon asks of its memory in timers and scrapes does not throw without a free file', async () => {
  const program = `
    import { openSync } from 'node:fs'
    import { processHeap } from '${sourceOf('app/heap-release.ts')}'
    import { processFacts } from '${sourceOf('ops/metrics/unshown-facts.ts')}'
    const memory = processFacts.metrics('').find(({ name }) => name === 'process_resident_memory_bytes')
    const before = memory.read({}).length
    let code = ''
    while (code === '') try { openSync('/dev/null') } catch (error) { code = error.code }
    console.log(JSON.stringify([code, processHeap().bytes() > 0, before, memory.read({}).length]))`
  const limited = `ulimit -n 64 && exec "$0" --expose-gc --input-type=module -e "$1"`
  const { stdout } = await promisify(execFile)('/bin/sh', ['-c', limited, process.execPath, program])
  expect(JSON.parse(stdout)).toEqual(['EMFILE', true, 1, 0])
})

const sourceOf = (path: string) => new URL(`../../src/${path}`, import.meta.url).pathname
