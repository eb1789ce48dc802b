import { existsSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import { spawn } from 'node:child_process'
import { describe, expect, onTestFinished, test } from 'vitest'
import { newFolder } from '../../../support/folders.ts'
import { get, opsConfig, opsWorld } from '../../../support/ops-world.ts'

const mode = (path: string) => (statSync(path).mode & 0o777).toString(8)

async function connections(url: string | null, count: number, first = ''): Promise<Socket[]> {
  const port = Number(new URL(url ?? '').port)
  const sockets = Array.from({ length: count }, () => connect(port, '127.0.0.1'))
  onTestFinished(() => sockets.forEach((socket) => socket.destroy()))
  for (const socket of sockets) socket.on('error', () => undefined).resume()
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  for (const socket of sockets) if (first !== '') socket.write(first)
  return sockets
}

describe('connections that do nothing', () => {
  test.each([
    ['send nothing', ''],
    ['send half a request', 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: '],
    ['had an answer and stay', 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'],
  ])('and %s do not keep a probe out', async (_, first) => {
    await using world = opsWorld()
    await world.ops.start()
    await connections(world.ops.url(), 64, first)
    for (let probe = 0; probe < 20; probe += 1) {
      const before = performance.now()
      expect((await get(world.ops.url(), '/healthz')).status).toBe(200)
      expect(performance.now() - before).toBeLessThan(3000)
    }
    expect((await get(world.ops.url(), '/readyz')).status).toBe(503)
  })

  test('are closed where others need their place, and counted', async () => {
    await using world = opsWorld()
    await world.ops.start()
    const sockets = await connections(world.ops.url(), 300)
    const open = () => sockets.filter((socket) => !socket.destroyed).length
    await expect.poll(open, { timeout: 10_000 }).toBeLessThanOrEqual(64)
    const metrics = (await get(world.ops.url(), '/metrics')).text
    const closed = Number(/gateway_http_connections_closed_total (\d+)/.exec(metrics)?.[1])
    expect(closed).toBeGreaterThanOrEqual(236)
  })

  test('do not keep a command of the control socket out', async () => {
    await using world = opsWorld()
    await world.ops.start()
    await connections(world.ops.url(), 200)
    expect((await get(world.ops.control(), '/status')).status).toBe(200)
  })
})

describe('the control socket', () => {
  test('is in $RUNTIME_DIRECTORY for the group of the service, else beside the spool for its user', async () => {
    const runtime = await newFolder()
    await using service = opsWorld({ env: { RUNTIME_DIRECTORY: `${runtime}:/run/more` } })
    await service.ops.start()
    expect(service.ops.control()).toBe(`unix:${runtime}/control.sock`)
    expect(mode(join(runtime, 'control.sock'))).toBe('660')
    await using plain = opsWorld()
    await plain.ops.start()
    expect(plain.ops.control()).toBe(`unix:${plain.folder}.sock`)
    expect(mode(`${plain.folder}.sock`)).toBe('600')
    await using named = opsWorld({
      env: { RUNTIME_DIRECTORY: runtime },
      ops: opsConfig(undefined, { control_socket: join(plain.folder, 'other.sock') }),
    })
    await named.ops.start()
    expect(mode(join(plain.folder, 'other.sock'))).toBe('600')
  })

  test('of a dead daemon is replaced', async () => {
    const folder = join(await newFolder(), 'spool')
    const path = `${folder}.sock`
    const script = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`
    await once(spawn(process.execPath, ['-e', script]), 'exit')
    expect(statSync(path).isSocket()).toBe(true)
    await using world = opsWorld({ spoolPath: folder })
    await world.ops.start()
    expect((await get(world.ops.control(), '/healthz')).status).toBe(200)
  })

  test('of a living process is not replaced: a condition says it', async () => {
    const folder = join(await newFolder(), 'spool')
    const path = `${folder}.sock`
    const other = createServer().listen(path)
    await once(other, 'listening')
    await using world = opsWorld({ spoolPath: folder })
    await world.ops.start()
    await world.ops.ready()
    expect(world.ops.status().conditions).toMatchObject([
      { code: 'CONTROL_SOCKET_FAILED', why: expect.stringContaining('Another process answers there') },
    ])
    expect(statSync(path).isSocket()).toBe(true)
    const socket = connect(path)
    await once(socket, 'connect')
    socket.destroy()
    other.close()
  })

  test('that cannot be opened is a condition, and is opened as soon as it can be', async () => {
    const folder = join(await newFolder(), 'data')
    const path = join(folder, 'spool.sock')
    await using world = opsWorld({ spoolPath: join(folder, 'spool') })
    await world.ops.start()
    expect(world.ops.control()).toBeNull()
    const codes = () => world.ops.status().conditions.map(({ code }) => code)
    await world.ops.ready()
    // The spool says what is wrong then.
    expect(codes()).toEqual([])
    mkdirSync(folder)
    writeFileSync(path, 'no socket')
    await world.ops.ready()
    expect(codes()).toEqual(['CONTROL_SOCKET_FAILED'])
    rmSync(path)
    await world.ops.ready()
    expect(codes()).toEqual([])
    expect((await get(world.ops.control(), '/healthz')).status).toBe(200)
    rmSync(path)
    await world.ops.ready()
    expect((await get(world.ops.control(), '/healthz')).status).toBe(200)
  })

  test('whose directory is deleted while it runs is a condition within 10 s, and is there again afterwards', async () => {
    const folder = join(await newFolder(), 'run')
    mkdirSync(folder)
    await using world = opsWorld({
      ops: opsConfig(undefined, { control_socket: join(folder, 'control.sock') }),
    })
    await world.ops.start()
    await world.ops.ready()
    const codes = () => world.ops.status().conditions.map(({ code }) => code)
    rmSync(folder, { recursive: true })
    world.clock.move(10_000)
    await expect.poll(codes).toEqual(['CONTROL_SOCKET_FAILED'])
    mkdirSync(folder)
    // An attempt that still runs is not made twice: the next look makes another one.
    const atNextLook = () => {
      world.clock.move(10_000)
      return codes()
    }
    await expect.poll(atNextLook).toEqual([])
    expect((await get(world.ops.control(), '/healthz')).status).toBe(200)
  })

  test('has no file after the stop', async () => {
    const folder = join(await newFolder(), 'spool')
    const world = opsWorld({ spoolPath: folder })
    await world.ops.start()
    expect(existsSync(`${folder}.sock`)).toBe(true)
    await world.ops.stop()
    expect(existsSync(`${folder}.sock`)).toBe(false)
  })

  test('with a path beyond 107 bytes cannot be opened', async () => {
    const folder = join(await newFolder(), 'x'.repeat(100))
    mkdirSync(folder)
    await using world = opsWorld({ spoolPath: folder })
    await world.ops.start()
    await world.ops.ready()
    expect(world.ops.status().conditions).toMatchObject([
      { code: 'CONTROL_SOCKET_FAILED', why: expect.stringMatching(/at most 107/) },
    ])
  })
})
