// progress.ts: says on stderr that long work goes on, and how far it is.
//
//   Checking files: 1.2 GiB of 4.0 GiB (30 %), 120.0 MiB/s, 24 s left     where the total is known
//   Writing dead letters: 12000 lines, 3000/s, 4 s                        where it is not
//   Waiting for the daemon: 12 s                                          where only the time is known
//
// On a terminal it is one line, drawn again every 200 ms and removed at the end; work that ends within a
// second shows none. Elsewhere a plain line follows every ten seconds, and with --json none, because what is
// on stderr is then JSON. Nothing of it goes to stdout. A command whose output goes to the terminal while it
// works (`streams`) shows none there.

import type { Writable } from 'node:stream'
import { systemClock } from '../../std/clock.ts'
import { formatDuration, formatSize } from '../../std/quantity.ts'
import { createLiveOutput, type LiveOutput } from './live-output.ts'
import type { CommandIo } from './terminal.ts'

/** `unit`: `bytes`, or what is counted, in the plural. */
export type Amount = { done: number; total?: number; unit: string }
export type ReportAmount = (amount: Amount) => void

type ProgressIo = Pick<CommandIo, 'stdout' | 'stderr' | 'env' | 'json'>
type Work = { what: string; streams?: boolean }

const firstMs = 1000
const drawEveryMs = 200
const plainEveryMs = 10_000
/** Before, an estimate jumps. */
const estimateFromMs = 2000

/** Work in work shows one line: that of the outer, with the amounts of the inner. */
const shown = new WeakMap<Writable, ReportAmount>()

export async function withProgress<Result>(
  io: ProgressIo,
  { what, streams = false }: Work,
  work: (report: ReportAmount) => Promise<Result>,
): Promise<Result> {
  const outer = shown.get(io.stderr)
  if (outer !== undefined) return work(outer)
  const output = createLiveOutput(io.stderr, io.env)
  const isSilent =
    (!output.isLive && io.json === true) || (streams && (io.stdout as { isTTY?: boolean }).isTTY === true)
  const line = createProgressLine(what)
  const everyMs = output.isLive ? drawEveryMs : plainEveryMs
  const timer = setInterval(() => isSilent || show(output, line.text()), everyMs)
  timer.unref()
  shown.set(io.stderr, line.report)
  try {
    return await work(line.report)
  } finally {
    clearInterval(timer)
    shown.delete(io.stderr)
    output.clear()
    output.end()
  }
}

/** Null within the first second. */
function show(output: LiveOutput, text: string | null): void {
  if (text === null || output.isBehind()) return
  if (output.isLive) output.draw([text])
  else output.print([text])
}

function createProgressLine(what: string): { report: ReportAmount; text: () => string | null } {
  const startedAtMs = systemClock.monotonic()
  let amount: Amount | null = null
  /** Where the present count began: another total or unit is another part of the work. */
  let part = { done: 0, atMs: startedAtMs }
  return { report, text }

  function report(next: Amount): void {
    if (amount !== null && isOther(amount, next)) part = { done: next.done, atMs: systemClock.monotonic() }
    amount = next
  }

  function text(): string | null {
    const nowMs = systemClock.monotonic()
    const elapsedMs = nowMs - startedAtMs
    if (elapsedMs < firstMs) return null
    if (amount === null) return `${what}: ${formatDuration(elapsedMs)}`
    const partMs = nowMs - part.atMs
    const perS = partMs > 0 ? (amount.done - part.done) / (partMs / 1000) : 0
    const end = endText(amount, { perS, partMs }) ?? formatDuration(elapsedMs)
    return `${what}: ${amountText(amount)}, ${rateText(perS, amount.unit)}, ${end}`
  }
}

function isOther(before: Amount, next: Amount): boolean {
  return next.unit !== before.unit || next.total !== before.total || next.done < before.done
}

function amountText({ done, total, unit }: Amount): string {
  const of = (count: number) => (unit === 'bytes' ? formatSize(count) : String(count))
  const counted = unit === 'bytes' ? '' : ` ${unit}`
  if (total === undefined || total <= 0) return `${of(done)}${counted}`
  const percent = Math.floor((100 * Math.min(done, total)) / total)
  return `${of(done)} of ${of(total)}${counted} (${percent} %)`
}

function rateText(perS: number, unit: string): string {
  return unit === 'bytes' ? `${formatSize(Math.round(perS))}/s` : `${Math.round(perS)}/s`
}

/** Null where the end cannot be estimated. */
function endText({ done, total }: Amount, { perS, partMs }: { perS: number; partMs: number }): string | null {
  if (total === undefined || perS <= 0 || partMs < estimateFromMs || done > total) return null
  return `${formatDuration(Math.max(1, Math.round((total - done) / perS)) * 1000)} left`
}
