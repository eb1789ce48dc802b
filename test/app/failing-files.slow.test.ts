// Each call of the file system in the daemon fails with each error that a disk, a mount, a person or a limit can cause.
// The daemon stays up, or refuses to start with a code, and works when the fault is gone.

import { cp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { readFileSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { realPlaces, startGateway, systemKernelClock, type Gateway } from '../../src/app/app.ts'
import { whenAborted } from '../../src/std/clock.ts'
import { loadConfig } from '../../src/config/config.ts'
import { newRandomId } from '../../src/domain/ids.ts'
import { sandboxAccount } from '../../src/sandbox/sandbox.ts'
import { GatewayError } from '../../src/std/gateway-error.ts'
import { openLevelStore, realDisk } from '../../src/storage/storage.ts'
import { checkFiles } from '../../src/storage/store-check/check-files.ts'
import { readRound } from '../../src/storage/store-check/table-round.ts'
import { callsOfFiles, failFiles, type FailingFiles } from '../support/failing-files.ts'
import { createFastClock } from '../support/fast-clock.ts'
import { newFolder } from '../support/folders.ts'
import { killedCopy } from '../support/killed-copy.ts'
import { createDevice } from '../support/mqtt-device.ts'
import { keptOutput } from '../support/ops-world.ts'
import { messageOf, startSandbox, topicOf } from '../support/pipeline-world.ts'

const allCodes =
  `EACCES EBUSY EDQUOT EEXIST EINVAL EISDIR ELOOP EMFILE ENAMETOOLONG ENFILE ENOENT ENOSPC ENOTDIR EPERM EROFS ESTALE
  ETIMEDOUT`.split(/\s+/)

/** EIO and two others, or with ALL_CODES=1 every one, which takes half an hour. */
function codesOf(index: number): string[] {
  if (process.env['ALL_CODES'] === '1') return ['EIO', ...allCodes]
  return ['EIO', ...[0, 1].map((n) => allCodes[(2 * index + n) % allCodes.length] ?? '')]
}

/** Of calls that are not tried, or are not heard of: why. */
const { 'not tried': notTried, silent } = parse(
  readFileSync(new URL('failing-files.slow.yaml', import.meta.url), 'utf8'),
) as Record<'not tried' | 'silent', Record<string, string>>

const calls = [...callsOfFiles('src/cli/run-command.ts')]

/** Without the line: `src/FILE.ts NAME #2` is the second call of this name there. */
function labelOf(site: string): string {
  const same = calls.filter((call) => call.replace(/:\d+/, '') === site.replace(/:\d+/, ''))
  return `${site.replace(/:\d+/, '')} #${same.indexOf(site) + 1}`
}

const isIn = (reasons: Record<string, string>, site: string) =>
  Object.keys(reasons).some((key) => labelOf(site).startsWith(key))
const isNotTried = (site: string) => isIn(notTried, site)

const isSilent = (site: string) => isIn(silent, site)

/** Starts of one gateway under faults, and rounds of work in each. */
const startsMax = 24
const roundsMax = 20

/** When a call was seen first. A stop counts as a start. */
type Phase = 'start' | 'work' | 'lose' | 'mend'

type World = { path: string; env: NodeJS.ProcessEnv; folder: string }

async function newWorld(baseUrl: string): Promise<World> {
  const folder = await newFolder()
  const path = join(folder, 'gateway.yaml')
  await writeFile(join(folder, 'devices.csv'), 'device,asset_id\ntruck-1,A1\n')
  await writeFile(
    join(folder, 'keys.json'),
    JSON.stringify({
      accessKeyId: sandboxAccount.accessKeyId,
      secretAccessKey: sandboxAccount.secret.reveal(),
    }),
  )
  await writeFile(join(folder, 'passwords'), '')
  await writeFile(
    path,
    `
ingest: { broker: { listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true, password_file: passwords } } }
sources: [{ name: phones, preset: owntracks }, { name: trucks, topic: "telemetry/v1/{device}", map: { time: { path: ts, format: ms }, latitude: { path: lat }, longitude: { path: lon } } }]
devices: { file: devices.csv }
defaults: { carrier: ACME, operator: OP1, asset_type: TRACTOR }
spool: { path: ./data/spool, min_free_bytes: 1MiB, allow_in_memory: true }
delivery: { base_url: "${baseUrl}", credentials: { source: file, path: keys.json }, batch: { linger: 10ms } }
ops: { listen: "127.0.0.1:0", stop_deadline: 5s }
alerts: { wait: 1s, receivers: [{ name: duty, type: command, command: [/bin/true] }] }
`,
  )
  return { path, folder, env: {} }
}

/** All that the gateways said, since a call began to fail. */
const heard: (() => string)[] = []

/** Events of the log above `info`. */
const warnings = () =>
  new Set(
    heard.flatMap((one) =>
      [...one().matchAll(/^\{"level":"(?:warn|error|fatal)".*?"event":"(\w+)"/gm)].map(
        ([, name = '']) => name,
      ),
    ),
  )

/** By a code in a log line, an answer or an error of the start; or by a warning that there is else not. */
function isSaid(codes: readonly string[], usual: ReadonlySet<string>): boolean {
  const all = heard.map((one) => one()).join('\n')
  return codes.some((code) => all.includes(code)) || [...warnings()].some((name) => !usual.has(name))
}

/** Of an error, also its causes. */
function noteError(error: unknown): void {
  for (let one = error; one instanceof Error; one = one.cause) {
    const { message, why = '' } = one as Error & { why?: string }
    heard.push(() => `${message} ${why}`)
  }
}

type Running = { gateway: Gateway; end: Promise<string>; loseStore: () => void; world: World }

async function start(world: World): Promise<Running> {
  const { path, env } = world
  const clock = createFastClock(20)
  const output = keptOutput()
  heard.push(output.text)
  let fails = false
  let losses = 0
  const { config, files, secretFiles } = await loadConfig(path, { env })
  const gateway = await startGateway(
    {
      clock,
      kernel: systemKernelClock(realPlaces(env)),
      random: Math.random,
      newId: newRandomId,
      env,
      stdout: output.stream,
      version: '0.0.0-test',
      // What the threads do, here, where their calls fail, too.
      checkStore: (request, options) => checkFiles(request, options),
      readTables: (round, { onTable, signal }) =>
        Promise.race([readRound(round, (read) => signal.aborted || onTable(read)), whenAborted(signal)]).then(
          () => undefined,
        ),
      disk: realDisk,
      configFiles: files,
      secretFiles,
      async openStore(at, options) {
        const store = await openLevelStore(at, options)
        return {
          ...store,
          async write(ops, how) {
            if (fails && at.endsWith('store')) {
              fails = false
              losses += 1
              throw new Error(losses % 2 === 0 ? 'IO error: a test' : 'No space left on device')
            }
            await store.write(ops, how)
          },
        }
      },
    },
    config,
    path,
  )
  const end = gateway.broken.then(
    (fault) => `it gave up: ${fault.code}`,
    (error: unknown) => `it ended: ${String(error)}`,
  )
  return { gateway, end, world, loseStore: () => void (fails = true) }
}

let message = 0
let snapshots = 0

/** A message, a reload, changes for the audit log, a snapshot, the page. */
async function work({ gateway, world }: Running): Promise<void> {
  await publish(gateway, 300)
  void gateway.reload('a test')
  await control(gateway, '/control/probe')
  const to = join(world.folder, `snapshot-${(snapshots += 1)}`)
  await control(gateway, `/control/spool/snapshot?to=${encodeURIComponent(to)}`)
  await control(gateway, '/audit', 'GET')
  await page(gateway)
}

/** What the start began may still be under way. */
async function pass({ gateway }: Running): Promise<void> {
  await publish(gateway, 100)
}

async function lose({ gateway, loseStore }: Running): Promise<void> {
  loseStore()
  await publish(gateway, 100)
  await publish(gateway, 1000)
}

async function page({ addresses }: Gateway): Promise<void> {
  const get = async (path: string) => {
    const answer = await fetch(`${addresses.ops}${path}`, { headers: { Accept: 'text/html' } })
    return answer.text()
  }
  const shown = await get('/').catch(() => '')
  for (const [, path = ''] of shown.matchAll(/"(\/page\/assets\/[^"]+)"/g)) await get(path).catch(() => '')
}

async function control({ addresses }: Gateway, path: string, method = 'POST'): Promise<void> {
  const socketPath = addresses.control.replace('unix:', '')
  if (socketPath === '') return
  await new Promise<void>((resolve) => {
    const sent = request({ socketPath, path, method, timeout: 2000 }, (answer) => {
      void text(answer)
        .then(
          (body) => void heard.push(() => body),
          () => undefined,
        )
        .finally(resolve)
    })
    sent.on('error', () => resolve())
    sent.on('timeout', () => sent.destroy())
    sent.end()
  })
}

/** Whether a message is acknowledged. */
async function publish({ addresses }: Gateway, boundMs: number): Promise<boolean> {
  const port = Number(addresses.mqtt[0]?.split(':').at(-1) ?? 0)
  if (port === 0) {
    await new Promise((resolve) => setTimeout(resolve, 50))
    return false
  }
  message += 1
  const device = await createDevice({ port, clientId: 'truck-1' }).catch(() => null)
  if (device === null) return false
  try {
    const acked = device.connect().then(async () => {
      device.publish({ topic: topicOf('truck-1'), payload: messageOf(message), messageId: 1 })
      await device.acked(1)
      return true
    })
    acked.catch(() => undefined)
    const late = new Promise<false>((resolve) => setTimeout(() => resolve(false), boundMs))
    return await Promise.race([acked.catch(() => false), late])
  } finally {
    device.destroy()
  }
}

async function worksWithin(running: Running, boundMs: number): Promise<string | null> {
  const endMs = performance.now() + boundMs
  while (performance.now() < endMs) {
    const ended = await Promise.race([running.end, publish(running.gateway, 1000)])
    if (ended === true) return null
    if (typeof ended === 'string') return ended
  }
  return `no acknowledgement: ${JSON.stringify(running.gateway.status().conditions.map(({ code, why }) => [code, why]))}`
}

/** What ended the process, were it the daemon. */
function watchUnhandled(): string[] {
  const found: string[] = []
  for (const name of ['unhandledRejection', 'uncaughtException'] as const) {
    const before = process.listeners(name as 'uncaughtException')
    process.removeAllListeners(name)
    const noted = (error: unknown) =>
      void found.push(error instanceof Error ? (error.stack ?? '') : String(error))
    process.on(name, noted)
    onTestFinished(() => {
      process.removeListener(name, noted)
      for (const one of before) process.on(name, one)
    })
  }
  // Node closes a file that is open and not reachable any more.
  const leaked = ({ message: what }: Error) => void (what.includes('garbage collection') && found.push(what))
  process.on('warning', leaked)
  onTestFinished(() => void process.removeListener('warning', leaked))
  return found
}

async function damageLog(store: string): Promise<void> {
  for (const name of await readdir(store)) {
    const path = join(store, name)
    if (!name.endsWith('.log') || (await stat(path)).size < 100) continue
    const bytes = await readFile(path)
    bytes.fill(0xff, 20, 30)
    await writeFile(path, bytes)
  }
}

/** Starts and works until each code was met or no more are. Null where no gateway runs in the end. */
async function tryAll(
  files: FailingFiles,
  world: World,
  { phase, say }: { phase: Phase; say: (what: string) => void },
): Promise<Running | null> {
  let running: Running | null = null
  const round = { start: pass, work, lose, mend: pass }[phase]
  let untouched = 0
  for (let starts = 0; starts < startsMax; starts += 1) {
    const before = files.left()
    try {
      running = await start(world)
      for (let rounds = 0, left = -1; rounds < roundsMax && files.left() > 0; rounds += 1) {
        if (left === files.left()) break
        left = files.left()
        await round(running)
      }
    } catch (error) {
      noteError(error)
      if (!(error instanceof GatewayError)) say(`the start threw ${String(error)} (${files.left()} left)`)
    }
    if (files.left() === 0) return running
    await running?.gateway.stop('a test')
    running = null
    untouched = files.left() === before ? untouched + 1 : 0
    if (untouched === 2) return null
  }
  return null
}

test(
  'each call of the file system may fail in each way, and the daemon stays up',
  { timeout: 3_600_000 },
  async () => {
    // As the daemon: no start finds files that others may read.
    const umask = process.umask(0o077)
    onTestFinished(() => void process.umask(umask))
    const { url } = await startSandbox()
    const template = await newWorld(url)
    let copy = ''
    const unhandled = watchUnhandled()
    using files = await failFiles()
    const phases = new Map<string, Phase>()
    const note = (phase: Phase) => {
      for (const site of files.seen) if (!phases.has(site)) phases.set(site, phase)
    }
    for (const isFirst of [true, false]) {
      const first = await start(template)
      note('start')
      await work(first)
      expect(await worksWithin(first, 8000)).toBeNull()
      note('work')
      await lose(first)
      expect(await worksWithin(first, 8000)).toBeNull()
      note('lose')
      if (isFirst) copy = await killedCopy(join(template.folder, 'data/spool'))
      await first.gateway.stop('a test')
      note('work')
    }
    const usual = warnings()
    // A log whose first record is damaged, which the start mends.
    const damaged = `${copy}-damaged`
    onTestFinished(() => rm(damaged, { recursive: true, force: true }))
    await cp(copy, damaged, { recursive: true })
    await damageLog(join(damaged, 'store'))
    const mending = await newWorld(url)
    await cp(damaged, join(mending.folder, 'data/spool'), { recursive: true })
    const mended = await start(mending)
    expect(await worksWithin(mended, 8000)).toBeNull()
    note('mend')
    await mended.gateway.stop('a test')
    expect(unhandled).toEqual([])
    const usualMending = warnings()
    const wanted = process.env['SITES'] === undefined ? /./ : new RegExp(process.env['SITES'])
    const sites = [...files.seen].filter((site) => wanted.test(site) && !isNotTried(site)).sort()
    const problems: string[] = []
    const say = (site: string, what: string) => {
      problems.push(`${site}: ${what}`)
    }
    for (const [index, site] of sites.entries()) {
      const codes = codesOf(index)
      heard.length = 0
      files.fail(site, codes)
      // In a folder with a spool first, which the process before left open, then in empty ones.
      for (let folders = 0, left = 0; files.left() > 0; folders += 1) {
        if (folders > 1 && left === files.left()) break
        left = files.left()
        const world = await newWorld(url)
        const phase = phases.get(site) ?? 'start'
        const from = phase === 'mend' ? damaged : folders === 0 ? copy : null
        if (from !== null) await cp(from, join(world.folder, 'data/spool'), { recursive: true })
        const running = await tryAll(files, world, {
          phase,
          say: (what) => say(site, what),
        })
        const untried = files.left()
        files.pause(true)
        const last = running ?? (await start(world))
        const why = await worksWithin(last, 8000)
        if (why !== null) say(site, `${why} (${untried} left)`)
        await last.gateway.stop('a test')
        for (const one of unhandled.splice(0)) say(site, `unhandled: ${one}`)
        files.pause(false)
      }
      const untried = files.end()
      const met = codes.filter((code) => !untried.includes(code))
      if (
        met.length > 0 &&
        !isSaid(met, phases.get(site) === 'mend' ? usualMending : usual) &&
        !isSilent(site)
      )
        say(site, `no word of ${met.join()}`)
      if (untried.length > 0 && !isNotTried(site)) say(site, `not tried: ${untried.join()}`)
    }
    expect(problems).toEqual([])
    const missing = calls.filter((call) => !files.seen.has(call) && !isNotTried(call))
    expect(missing).toEqual([])
  },
)
