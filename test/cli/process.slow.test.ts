import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync } from 'node:fs'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { newFolder } from '../support/folders.ts'
import { startSpawnedDaemon, writeDaemonConfig } from '../support/spawned-daemon.ts'

const source = (path: string) => new URL(`../../src/${path}`, import.meta.url).pathname

/** `status` as a process that waits for an answer which never comes; `preload` runs before it. */
async function waiting(preload: string) {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const url = `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`
  const child = spawn(process.execPath, [
    `--import=data:text/javascript,${encodeURIComponent(preload)}`,
    source('main.ts'),
    'status',
    '--url',
    url,
  ])
  const stderr = text(child.stderr)
  const ended = once(child, 'exit')
  await once(server, 'request')
  return {
    child,
    stderr,
    ended: async () => (await ended) as [number | null, string | null],
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL')
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

describe('the process', () => {
  test('the first signal stops the command in order', async () => {
    await using world = await waiting('')
    world.child.kill('SIGTERM')
    expect(await world.ended()).toEqual([1, null])
    expect(await world.stderr).toContain('DAEMON_UNREACHABLE')
  })

  test('a SIGHUP while the daemon starts does not end it, and its files are read again when it has started', async () => {
    const folder = await newFolder()
    const config = await writeDaemonConfig(folder, 'http://127.0.0.1:1')
    // Sent when the process first hears a signal.
    const preload =
      `const { on } = process; process.on = (name, listener) => { on.call(process, name, listener); ` +
      `if (name === 'SIGTERM') process.kill(process.pid, 'SIGHUP'); return process }`
    const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(preload)}` }
    const daemon = await startSpawnedDaemon(config, { env })
    await eventually(() => daemon.log().includes('"event":"mapping_reloaded"'))
    expect(daemon.log()).toContain('"cause":"SIGHUP"')
    process.kill(daemon.pid, 'SIGHUP')
    await eventually(() => daemon.log().split('"event":"mapping_reloaded"').length > 2)
    await daemon.stop()
  }, 30_000)

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('the second %s ends it at once', async (signal, status) => {
    // A command that does not hear the first one: its stop signal is cut off.
    const deaf = `AbortSignal.any = () => new AbortController().signal; process.on('${signal}', () => process.stdout.write('heard'))`
    await using world = await waiting(deaf)
    // The first ones that follow at once count as the same key press.
    world.child.stdout.on('data', () => world.child.kill(signal))
    world.child.kill(signal)
    expect(await world.ended()).toEqual([status, null])
  })

  test('a signal that arrives three times for one Ctrl-C stops the command in order', async () => {
    const repeat =
      "process.once('SIGINT', () => { for (const _ of [1, 2]) process.emit('SIGINT', 'SIGINT') })"
    await using world = await waiting(repeat)
    world.child.kill('SIGINT')
    expect(await world.ended()).toEqual([1, null])
    expect(await world.stderr).toContain('DAEMON_UNREACHABLE')
  })

  test('an unexpected error prints a fatal line and ends with status 1', async () => {
    await using world = await waiting(
      "process.on('SIGUSR2', () => { void Promise.reject(new Error('boom')) })",
    )
    world.child.kill('SIGUSR2')
    expect(await world.ended()).toEqual([1, null])
    expect(await world.stderr).toMatch(/^fatal: [\s\S]*boom/)
  })

  test('ends with the exit status of its command', () => {
    const run = (...argv: string[]) =>
      spawnSync(process.execPath, [source('pinned-node.js'), source('main.ts'), ...argv], {
        encoding: 'utf8',
        env: {},
      })
    expect(run('--version').status).toBe(0)
    expect(run('nonsense').status).toBe(2)
    const failed = run('status', '--url', 'http://127.0.0.1:1')
    expect([failed.status, failed.stderr.split('\n', 1)[0]]).toEqual([1, 'DAEMON_UNREACHABLE'])
  })

  test('survives a closed reader of its output', async () => {
    const child = spawn(process.execPath, [source('main.ts'), '--help'], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    child.stdout.destroy()
    const stderr = text(child.stderr)
    expect(await once(child, 'exit')).toEqual([0, null])
    expect(await stderr).toBe('')
  })

  test('a command whose output nobody reads any more ends, whatever it waits for', async () => {
    const lines = Array.from({ length: 200_000 }, () => '{"topic":"a/b","message":"x"}').join('\n')
    const child = spawn(process.execPath, [source('main.ts'), 'map', '--preset', 'simulator', '--ndjson'])
    const stderr = text(child.stderr)
    // The end of the input never comes.
    child.stdin.on('error', () => undefined).write(`${lines}\n`)
    await once(child.stdout, 'data')
    child.stdout.destroy()
    const [code, signal] = (await once(child, 'exit')) as [number | null, string | null]
    expect([code === null, signal]).toEqual([false, null])
    expect(await stderr).not.toMatch(/fatal|UNREACHABLE/)
  })

  test('a command that waits ends when the reader of its pipe ends, before it writes again', async () => {
    await using server = createServer((request, response) => {
      response.writeHead(200)
      // One message, and then nothing.
      if (request.url?.startsWith('/tap')) response.write('{"kind":"message","topic":"a/b"}\n')
      else response.end('{}')
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    const url = `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`
    // A pipe as a shell makes it: those of `spawn` are sockets. `wc` ends when the command has ended.
    const command = `"${process.execPath}" ${source('main.ts')} tap --url ${url} --json`
    const child = spawn('sh', ['-c', `{ ${command} 2>&3 | head -1 >&4; } 3>&1 4>&2 | wc -c`])
    const [shown, errors] = await Promise.all([text(child.stderr), text(child.stdout)])
    expect(shown).toBe('{"kind":"message","topic":"a/b"}\n')
    expect(errors.trim()).toBe('0')
    server.closeAllConnections()
  })

  test.skipIf(!existsSync('/dev/full')).each([
    [['--help'], /^OUTPUT_UNWRITABLE\n.*Cannot write the output[\s\S]*ENOSPC/],
    [['version', '--json'], /^\{"error":\{"code":"OUTPUT_UNWRITABLE"/],
  ])('a full device fails the command: %j', (argv, stderr) => {
    const full = openSync('/dev/full', 'w')
    const run = spawnSync(process.execPath, [source('main.ts'), ...argv], {
      stdio: ['ignore', full, 'pipe'],
      encoding: 'utf8',
    })
    closeSync(full)
    expect(run.status).toBe(1)
    expect(run.stderr).toMatch(stderr)
  })
})
