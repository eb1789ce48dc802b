// bench.ts: what the figures share: the sink as seen from here, waiting with a bound, medians, folders.

import { rmSync } from 'node:fs'
import { mkdtemp, readdir, rm, stat, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { runScript, startServer } from './children.ts'
import type { Child } from './children.ts'
import type { LoadResult } from './load.ts'
import type { SinkStats } from './sink.ts'

/** One line of the bench's output. */
export type Figure = {
  figure: string
  value: number
  unit: string
  /** What is to reach; null for figures that only explain others. */
  target: string | null
  reached: boolean | null
  detail: unknown
}

type Measured = Pick<Figure, 'figure' | 'unit' | 'detail'> & {
  value: number
  digits?: number
  /** What is to reach; a figure without either only explains others. */
  atLeast?: number
  atMost?: number
}

export function figureOf(measured: Measured): Figure {
  const { figure, value, digits = 3, unit, atLeast, atMost, detail } = measured
  const target = atLeast === undefined ? atMost : atLeast
  return {
    figure,
    value: rounded(value, digits),
    unit,
    target: target === undefined ? null : `${atLeast === undefined ? '<=' : '>='} ${target}`,
    reached: target === undefined ? null : value >= (atLeast ?? -Infinity) && value <= (atMost ?? Infinity),
    detail,
  }
}

export type BenchOptions = {
  /** Where spools go: a real disk. */
  dir: string
  /** Measurements of each kind; medians are taken. */
  pairs: number
  /** Multiplies the numbers of messages; below 1 the figures are trials of the bench, not results. */
  scale: number
}

export type Sink = Child & {
  port: number
  stats(): Promise<SinkStats>
  /** Accepts from now on, and counts from zero. */
  open(): Promise<void>
}

export async function startSink(options: { closed: boolean; answerMs?: number }): Promise<Sink> {
  const { closed, answerMs = 0 } = options
  const args = { closed: closed ? 1 : 0, answerMs }
  const child = await startServer(
    'sink.ts',
    Object.entries(args).flatMap(([name, value]) => [`--${name}`, String(value)]),
  )
  const url = `http://127.0.0.1:${child.port}/sink`
  const stats = async () => (await (await fetch(`${url}/stats`)).json()) as SinkStats
  const open = async () => void (await (await fetch(`${url}/open`, { method: 'POST' })).text())
  return Object.assign(child, { stats, open })
}

/** Runs the load generator; what is left out is its default, see load.ts. */
export function runLoad(options: {
  port: number
  messages: number
  connections?: number
  window?: number
  ratePerS?: number
  live?: boolean
  tls?: boolean
  /** Devices of each connection. */
  devices?: number
}): Promise<LoadResult> {
  const { port, messages, connections = 16, window = 64, ratePerS = 0, devices = 1 } = options
  const [live, tls] = [options.live ? 1 : 0, options.tls ? 1 : 0]
  const args = { port, messages, connections, window, rate: ratePerS, live, tls, devices }
  return runScript<LoadResult>(
    'load.ts',
    Object.entries(args).flatMap(([name, value]) => [`--${name}`, String(value)]),
  )
}

/** Asks again and again until `holds`; rejects after `timeoutMs`. */
export async function until(
  what: string,
  holds: () => Promise<boolean>,
  { timeoutMs, everyMs = 50 }: { timeoutMs: number; everyMs?: number },
): Promise<void> {
  const deadlineMs = performance.now() + timeoutMs
  while (!(await holds())) {
    if (performance.now() > deadlineMs) throw new Error(`waited ${timeoutMs} ms in vain until ${what}`)
    await wait(everyMs)
  }
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const [low, high] = [sorted[sorted.length % 2 === 0 ? middle - 1 : middle], sorted[middle]]
  if (low === undefined || high === undefined) throw new Error('no median of nothing')
  return (low + high) / 2
}

/** A folder that is gone at the end, also when the bench is interrupted. */
export async function makeFolder(dir: string): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(dir, 'gateway-bench-'))
  const remove = () => rmSync(path, { recursive: true, force: true })
  process.once('exit', remove)
  return {
    path,
    async [Symbol.asyncDispose]() {
      process.removeListener('exit', remove)
      await rm(path, { recursive: true, force: true })
    },
  }
}

/** Disk space of all files below `path`, as the file system gives it out. */
export async function diskBytes(path: string): Promise<number> {
  let bytes = 0
  for (const entry of await readdir(path, { withFileTypes: true, recursive: true })) {
    // LevelDB deletes tables while we look.
    const found = entry.isFile() ? await stat(join(entry.parentPath, entry.name)).catch(() => null) : null
    bytes += (found?.blocks ?? 0) * 512
  }
  return bytes
}

const memoryFileSystems: ReadonlySet<number> = new Set([0x01021994, 0x858458f6])

/** The first of the usual places for temporary files that is on a disk: in memory an fsync costs nothing. */
export async function realDisk(): Promise<string> {
  for (const path of [tmpdir(), '/var/tmp', process.cwd()]) {
    const found = await statfs(path).catch(() => null)
    if (found !== null && !memoryFileSystems.has(found.type)) return path
  }
  throw new Error('every place for temporary files is in memory; name a folder on a disk with --dir')
}

export function rounded(value: number, digits = 3): number {
  return Number(value.toFixed(digits))
}
