// disk-checks.ts: the disk of the spool: how long a flush takes, and how much the daemon writes on it.

import { randomUUID } from 'node:crypto'
import { open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf } from '../../std/gateway-error.ts'
import { formatDuration, formatSize } from '../../std/quantity.ts'
import { fileSystemAt, fileSystemText, fileSystemWarnings } from '../../std/file-system/file-system.ts'
import type { Config } from '../../config/config.ts'
import { nearestExisting, type Finding } from '../check-command/connection-findings.ts'
import type { RunningDaemon } from './listener-checks.ts'

const rounds = 20
const roundsMsMax = 5000
/** A disk of a good kind needs less than 5 ms. Every acknowledgement waits for one flush. */
const slowFromMs = 20

/** The type of the file system, and what it means for acknowledged data. */
export async function checkFileSystem({ spool }: Config): Promise<Finding> {
  const name = 'file system'
  const fileSystem = await fileSystemAt(spool.path)
  const [warning] = await fileSystemWarnings(spool.path)
  if (fileSystem === null)
    return { name, state: 'ok', what: `This machine does not say on which file system ${spool.path} is.` }
  if (warning === undefined)
    return { name, state: 'ok', what: `The spool ${spool.path} is on ${fileSystemText(fileSystem)}.` }
  const { what, act } = warning
  return { name, state: 'warning', what, why: 'Acknowledged data can be lost there.', act }
}

/** Writes a small file and flushes it, again and again, then deletes it. */
export async function checkFlush({ spool }: Config): Promise<Finding> {
  const name = 'fsync'
  try {
    const times = await flushTimes(await nearestExisting(spool.path))
    const median = times.toSorted((a, b) => a - b)[times.length >> 1] ?? 0
    const worst = Math.max(...times)
    const what = `A flush to the disk takes ${median.toFixed(1)} ms, ${worst.toFixed(1)} ms at worst (${times.length} tries).`
    if (median < slowFromMs) return { name, state: 'ok', what }
    return {
      name,
      state: 'warning',
      what,
      why: 'Acknowledgements wait for it.',
      act: 'Put spool.path on an SSD, and on a local disk.',
    }
  } catch (error) {
    return {
      name,
      state: 'failed',
      what: `A file beside the spool ${spool.path} cannot be written and flushed.`,
      why: `${messageOf(error)}.`,
      act: 'Run doctor as root or as the user of the daemon; check the disk and the access rights.',
    }
  }
}

async function flushTimes(folder: string): Promise<number[]> {
  const path = join(folder, `.doctor-${randomUUID()}`)
  const block = Buffer.alloc(4096, 1)
  const times: number[] = []
  const file = await open(path, 'wx', 0o600)
  try {
    const startedMs = performance.now()
    while (times.length < rounds && performance.now() - startedMs < roundsMsMax) {
      const beganMs = performance.now()
      await file.write(block, 0, block.length, times.length * block.length)
      await file.datasync()
      times.push(performance.now() - beganMs)
    }
  } finally {
    await file.close()
    await rm(path, { force: true })
  }
  return times
}

const yearSeconds = 31_557_600
/** Industrial eMMC and small SSDs are made for about this much in a few years. */
const wearingFromTb = 50
/** Below these, start and recovery weigh too much. */
const enough = { messages: 1000, upMs: 60_000 }

/** `processes`: where the kernel describes them. */
export async function checkWear(daemon: RunningDaemon | null, processes = '/proc'): Promise<Finding> {
  const name = 'write wear'
  const skipped = (what: string): Finding => ({ name, state: 'skipped', what })
  if (daemon === null) return skipped('It is measured on a running daemon.')
  if (!daemon.isLocal) return skipped('The daemon runs on another machine.')
  const { pid, startedAt, now, totals } = daemon.status
  let written: number
  try {
    written = writtenIn(await readFile(join(processes, String(pid), 'io'), 'utf8'))
  } catch (error) {
    return skipped(
      `The bytes that the daemon (pid ${pid}) wrote cannot be read: ${messageOf(error)}. Run doctor as root or as its user.`,
    )
  }
  const upMs = Date.parse(now) - Date.parse(startedAt)
  if (upMs < enough.upMs || totals.acked < enough.messages)
    return skipped(
      `${formatSize(written)} written for ${totals.acked} messages in ${formatDuration(upMs)}. A rate needs ` +
        `${enough.messages} messages and ${formatDuration(enough.upMs)}.`,
    )
  const perYearTb = ((written / upMs) * 1000 * yearSeconds) / 1e12
  const what =
    `${formatSize(written)} written for ${totals.acked} messages: ${Math.round(written / totals.acked)} bytes ` +
    `per message. At this rate ${perYearTb < 0.1 ? 'less than 0.1' : perYearTb.toFixed(1)} TB a year.`
  if (perYearTb < wearingFromTb) return { name, state: 'ok', what }
  return {
    name,
    state: 'warning',
    what,
    act: 'Compare it with the endurance of the disk (TBW in its data sheet), and watch its SMART values.',
  }
}

/** Bytes that reached, or will reach, the disk. */
function writtenIn(text: string): number {
  const field = (key: string) => Number(new RegExp(`^${key}: (\\d+)$`, 'm').exec(text)?.[1])
  const written = field('write_bytes') - field('cancelled_write_bytes')
  if (Number.isNaN(written)) throw new Error('the kernel does not count them')
  return Math.max(0, written)
}
