// cell-run.ts: one cell: damages a copy of the base, and lets verify, salvage, the daemon and repair work on
// it, each in a process of its own. Finds no fault itself: damage-rules.ts judges what was seen.

import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open, readdir, readFile, rm, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Status } from '../../src/ops/status-schema/status-schema.ts'
import type { Cell, Damage } from './cells.ts'
import { copySpool, numbersIn, until, writeConfig, type DamageBase } from './damage-base.ts'
import { openService, type Service } from '../support/driver/service.ts'
import {
  openPayloads,
  runCommand,
  startDaemon,
  type CommandEnd,
  type LogLine,
  type Daemon,
} from '../support/driver/daemon.ts'

export type CellResult = {
  verify: CommandEnd
  salvage: CommandEnd
  /** Payload numbers in the files of the salvage, suspect ones and those of held batches included. */
  salvaged: ReadonlySet<number>
  /** Files of the spool that verify or salvage changed. */
  changed: readonly string[]
  /** What the daemon did with the damaged spool. */
  start: 'ready' | 'refused' | `ended: ${string}` | 'neither ready nor refused'
  plan: CommandEnd | null
  repair: CommandEnd | null
  /** After a repair, or at once. */
  opened: boolean
  drained: boolean
  /** How the daemon ended at SIGTERM. */
  end: string
  /** Payload numbers by batchId. */
  received: ReadonlyMap<string, readonly number[]>
  /** What the service received that it never may. */
  wrong: readonly string[]
  status: Status | null
  lines: readonly LogLine[]
  tookMs: number
}

export type CellWorld = { base: DamageBase; folder: string }

const commandMs = 60_000
const startMs = 40_000
const drainMs = 90_000

export async function runCell(world: CellWorld, cell: Cell): Promise<CellResult> {
  const { base } = world
  await using service = await openService()
  const startedMs = performance.now()
  const folder = join(world.folder, `cell-${cell.id}`)
  const spoolPath = join(folder, 'spool')
  await copySpool(base.spoolPath, spoolPath)
  const config = await writeConfig(folder, spoolPath, service.url)
  await applyDamage(join(spoolPath, cell.file), cell.damage)
  const before = await sumsOf(spoolPath)
  const limits = { timeoutMs: commandMs }
  const verify = await runCommand(['spool', 'verify', '--path', spoolPath, '--json'], limits)
  const to = join(folder, 'rescue')
  const salvage = await runCommand(['spool', 'salvage', '--path', spoolPath, '--to', to, '--json'], limits)
  const salvaged = await salvagedNumbers(to, base.firstTime)
  const changed = differences(before, await sumsOf(spoolPath))
  const gateway = startDaemon(config)
  const seen = await useDaemon(gateway, { spoolPath, limits, service })
  await rm(folder, { recursive: true, force: true })
  return {
    verify,
    salvage,
    salvaged,
    changed,
    ...seen,
    received: numbersIn(service, base.firstTime),
    wrong: service.wrong(),
    lines: gateway.lines,
    tookMs: performance.now() - startedMs,
  }
}

type Use = { spoolPath: string; limits: Parameters<typeof runCommand>[1]; service: Service }
type Seen = Pick<CellResult, 'start' | 'plan' | 'repair' | 'opened' | 'drained' | 'end' | 'status'>

async function useDaemon(gateway: Daemon, { spoolPath, limits, service }: Use): Promise<Seen> {
  const seen: Seen = {
    start: 'ready',
    plan: null,
    repair: null,
    opened: false,
    drained: false,
    end: '',
    status: null,
  }
  try {
    const first = await within(startMs, gateway.event('gateway_ready', 'spool_refused'))
    if (first === undefined) seen.start = 'neither ready nor refused'
    else if (first === null) seen.start = `ended: ${await gateway.ended}`
    else if (first.event === 'spool_refused') {
      seen.start = 'refused'
      seen.plan = await runCommand(['spool', 'repair', '--path', spoolPath, '--json'], limits)
      seen.repair = await runCommand(['spool', 'repair', '--path', spoolPath, '--yes', '--json'], limits)
    }
    const isRepaired = seen.repair === null || seen.repair.status === 'exit 0'
    seen.opened = Boolean(await within(isRepaired ? startMs : 0, gateway.event('gateway_ready')))
    if (seen.opened) {
      seen.drained = await drained(gateway, service)
      seen.status = await gateway.status()
    }
    if (gateway.running) seen.end = (await within(commandMs, gateway.stop())) ?? 'SIGTERM did not end it'
    else seen.end = await gateway.ended
    return seen
  } finally {
    await gateway.kill()
  }
}

/** `undefined` when the time is over. */
async function within<Result>(boundMs: number, work: Promise<Result>): Promise<Result | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), boundMs)
  })
  const result = await Promise.race([work, late])
  clearTimeout(timer)
  return result
}

async function drained(gateway: Daemon, { arrivals }: Service): Promise<boolean> {
  try {
    let accepted = -1
    const isEmpty = async () => {
      const status = await gateway.status()
      if (status === null || !gateway.running) return !gateway.running
      const open = openPayloads(status)
      const isQuiet = accepted === arrivals.length
      accepted = arrivals.length
      return open === 0 && isQuiet
    }
    await until('the lanes are empty', isEmpty, drainMs)
    return gateway.running
  } catch {
    return false
  }
}

const pageBytes = 4096

export async function applyDamage(path: string, damage: Damage): Promise<void> {
  switch (damage.kind) {
    case 'missing':
      return rm(path)
    case 'truncated':
      return truncate(path, damage.offset)
    case 'zeroed page': {
      const { size } = await stat(path)
      return overwrite(path, damage.offset, Buffer.alloc(Math.min(pageBytes, size - damage.offset)))
    }
    case 'flipped bit': {
      const byte = (await readFile(path))[damage.offset] ?? 0
      return overwrite(path, damage.offset, Buffer.from([byte ^ (1 << damage.bit)]))
    }
  }
}

async function overwrite(path: string, offset: number, bytes: Buffer): Promise<void> {
  const file = await open(path, 'r+')
  try {
    await file.write(bytes, 0, bytes.length, offset)
  } finally {
    await file.close()
  }
}

/** Payloads that an import would bring back or that a person finds marked. */
async function salvagedNumbers(folder: string, firstTime: number): Promise<Set<number>> {
  const numbers = new Set<number>()
  for (const name of ['payloads.ndjson', 'held.ndjson', 'suspect.ndjson']) {
    const stream = createReadStream(join(folder, name))
    const missing = new Promise<false>((resolve) => {
      stream.once('error', () => resolve(false))
    })
    const opened = new Promise<true>((resolve) => {
      stream.once('open', () => resolve(true))
    })
    if (!(await Promise.race([missing, opened]))) continue
    for await (const line of createInterface({ input: stream })) {
      const time = /"signalTimestamp":(\d+)/.exec(line)?.[1]
      if (time !== undefined) numbers.add(Number(time) - firstTime)
    }
  }
  return numbers
}

/** Files that tools may always make or touch. */
const unimportant = new Set(['LOCK', 'LOG', 'LOG.old', 'ballast'])

async function sumsOf(path: string): Promise<Map<string, string>> {
  const sums = new Map<string, string>()
  for (const entry of await readdir(path, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || unimportant.has(entry.name)) continue
    const file = join(entry.parentPath, entry.name)
    sums.set(
      file,
      createHash('sha1')
        .update(await readFile(file))
        .digest('hex'),
    )
  }
  return sums
}

function differences(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  const names = new Set([...before.keys(), ...after.keys()])
  return [...names].filter((name) => before.get(name) !== after.get(name))
}
