// Runs every command of README.md, CONTRIBUTING.md, UPGRADING.md and docs/ as it is written, or names the test that runs it.

import { execFile, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { cp, readdir, readFile, rm, symlink } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { eventually } from '../support/eventually.ts'

const run = promisify(execFile)
const root = resolve(import.meta.dirname, '../..')

/** npm, with the Node of the project in front as in any npm script. */
const shell = (command: string, cwd: string) =>
  run('bash', ['-c', command], { cwd, env: environment, timeout: 60_000, maxBuffer: 16 * 1024 ** 2 })

const environment = { ...process.env, npm_config_update_notifier: 'false' }

/** Commands that another test or .ci/run runs, with the reason. */
const elsewhere = (
  parse(readFileSync(join(import.meta.dirname, 'commands-elsewhere.yaml'), 'utf8')) as {
    command: string
    why: string
  }[]
).map(({ command }) => command)

const started = ['npm ci && npm start', 'npm run gateway -- sandbox --listen 127.0.0.1:8081']

/** The pages for people that may contain commands. */
async function pages(): Promise<string[]> {
  const docs = (await readdir(join(root, 'docs'))).filter((name) => name.endsWith('.md'))
  const top = ['README.md', 'CONTRIBUTING.md', 'UPGRADING.md'].filter((name) => existsSync(join(root, name)))
  return [...top, ...docs.map((name) => `docs/${name}`)]
}

/** Every command in a block marked `sh`, each once, in the order of the pages. */
async function documentedCommands(): Promise<string[]> {
  const commands = new Set<string>()
  for (const page of await pages()) {
    const text = await readFile(join(root, page), 'utf8')
    for (const block of text.matchAll(/^```sh\n([\s\S]*?)^```$/gm))
      for (const command of (block[1] ?? '').trim().split('\n')) commands.add(command)
  }
  return [...commands]
}

async function portsAreFree(ports: readonly number[]): Promise<boolean> {
  for (const port of ports) {
    const server = createServer()
    const outcome = once(server, 'listening').then(
      () => true,
      () => false,
    )
    server.listen(port, '127.0.0.1')
    if (!(await outcome)) return false
    await new Promise((resolve) => {
      server.close(resolve)
    })
  }
  return true
}

type Started = { output: () => string; end(): Promise<unknown>; kill(): void }

/** Starts a command that goes on, in a process group of its own. */
function start(command: string, cwd: string): Started {
  const child = spawn('bash', ['-c', `exec ${command}`], { cwd, env: environment, detached: true })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const exited = once(child, 'exit')
  const signal = (name: NodeJS.Signals) => {
    try {
      process.kill(-(child.pid ?? 0), name)
    } catch {
      // Ended already.
    }
  }
  return {
    output: () => output,
    end() {
      signal('SIGINT')
      return exited
    },
    kill: () => signal('SIGKILL'),
  }
}

const commands = await documentedCommands()
const exports = commands.filter((command) => command.startsWith('export '))
const daemonCommand = commands.find((command) => command.includes('gateway -- run ')) ?? ''
// Faults last: the commands before them need a service that answers normally.
const rest = commands
  .filter(
    (command) =>
      !elsewhere.includes(command) &&
      !started.includes(command) &&
      !exports.includes(command) &&
      command !== daemonCommand,
  )
  .toSorted((one, other) => Number(one.includes('-X PUT')) - Number(other.includes('-X PUT')))
const needsDaemon = (command: string) =>
  /simulate|status|curl|dead-letters|-- batches|spool verify|-- ledger|-- alerts/.test(command)

describe('the documentation', () => {
  test('has its test command in .ci/run, as it is written', async () => {
    expect(commands).toContain('npm ci && npm test')
    const ci = await readFile(join(root, '.ci/run'), 'utf8')
    expect(ci).toContain('npm ci && npm test')
    expect(ci).toContain('npm run check')
  })

  test('its quick start runs all parts, delivers, and leaves no file', async () => {
    expect(commands).toContain(started[0])
    // `npm ci` ran before this test; the rest is run as it is written.
    const trial = start('npm start', root)
    onTestFinished(trial.kill)
    await eventually(() => /accepted [1-9]/.test(trial.output()))
    expect(trial.output()).toMatch(/mosquitto_pub -h 127\.0\.0\.1 -p \d+ -q 1 -t telemetry\/v1\/my-truck/)
    const folder = /config, spool, log\s+(\S+)/.exec(trial.output())?.[1] ?? ''
    expect(existsSync(folder)).toBe(true)
    await trial.end()
    await eventually(() => !existsSync(folder))
    expect(trial.output()).toMatch(/The trial ends: \d+ messages? acknowledged/)
  })
})

const free = await portsAreFree([1883, 8080, 8081])

// One test a command, so that the one that hangs or takes long is named.
describe.skipIf(!free)('every command of the documentation runs as it is written', () => {
  // A copy of the tree, because the example config keeps its spool beside it.
  const copy = join(tmpdir(), `documented-commands-${randomUUID()}`)
  const results = new Map<string, string>()
  const outputOf = (part: string) => [...results].find(([command]) => command.includes(part))?.[1] ?? ''
  /** Rejects when the command exits with another code than 0, or takes longer than its limit. */
  const runOne = async (command: string) => {
    results.set(command, (await shell(`${exports.join('; ')}; ${command}`, copy)).stdout)
  }
  let sandbox: Started | undefined
  let daemon: Started | undefined

  beforeAll(async () => {
    for (const name of ['src', 'config', 'package.json', '.npmrc', 'README.md']) {
      await cp(join(root, name), join(copy, name), { recursive: true })
    }
    await symlink(join(root, 'node_modules'), join(copy, 'node_modules'))
    sandbox = start(started[1] ?? '', copy)
    await eventually(() => sandbox?.output().includes('http://127.0.0.1:8081') === true)
  })
  afterAll(async () => {
    daemon?.kill()
    sandbox?.kill()
    await rm(copy, { recursive: true, force: true, maxRetries: 3 })
  })

  test('one block sets the credentials, one starts the daemon', () => {
    expect(exports).toHaveLength(1)
    expect(daemonCommand).not.toBe('')
  })

  test.each(rest.filter((command) => !needsDaemon(command)))('%s', async (command) => {
    await expect(runOne(command)).resolves.toBeUndefined()
  })

  test('the daemon starts', async () => {
    daemon = start(`bash -c '${exports.join('; ')}; exec ${daemonCommand}'`, copy)
    await eventually(() => daemon?.output().includes('"gateway_ready"') === true)
    expect(daemon.output()).not.toContain('"level":"fatal"')
  })

  test.each(rest.filter(needsDaemon))('%s', async (command) => {
    await expect(runOne(command)).resolves.toBeUndefined()
  })

  test('the daemon delivers, and ends', async () => {
    const stats = rest.find((command) => command.includes('sandbox/stats')) ?? 'false'
    await eventually(async () => !/"payloadsAccepted": ?0\b/.test((await shell(stats, copy)).stdout))
    await daemon?.end()
    await eventually(() => daemon?.output().includes('"gateway_stopped"') === true)
    expect(daemon?.output()).not.toContain('"level":"error"')
  })

  test('the commands printed what the documentation says', () => {
    expect(JSON.parse(outputOf('gateway -- map --config')).payloads).toHaveLength(1)
    expect(JSON.parse(outputOf('8080/status'))).toMatchObject({ ready: true })
    expect(JSON.parse(outputOf('sandbox/stats'))).toHaveProperty('payloadsAccepted')
    expect(outputOf('simulate')).toMatch(/500/)
  })
})
