// kernel-clock.ts: what the system says about its clock: which boot it counts from, how long the machine
// slept, and whether something keeps it synchronised. Node cannot ask the kernel itself (adjtimex).
//
//   timedatectl         systemd; it asks the kernel, whichever program synchronises the clock
//   chronyc, adjtimex   systems without systemd, containers
//   the marker file     systemd-timesyncd touches it at each synchronisation; a container may share it. It
//                       stays when the clock is set by hand, so after a step only a newer one counts
//
// What is not installed, fails or does not answer in time says nothing.

import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { access, constants, stat } from 'node:fs/promises'
import { uptime } from 'node:os'
import { delimiter, join } from 'node:path'
import { systemClock } from '../std/clock.ts'

export type KernelClock = {
  /** The same for all processes between two starts of the machine. */
  readonly bootId: string
  /** How long the machine slept since it started: the monotonic clock stands still then. */
  sleptMs(): number
  /** Whether the clock is kept right; `steppedAt`: when it was set. Resolves with false where unknown. */
  isSynchronised(steppedAt: number | null): Promise<boolean>
}

type Command = { file: string; args: readonly string[]; means: RegExp }

const commands: readonly Command[] = [
  { file: 'timedatectl', args: ['show', '--property=NTPSynchronized', '--value'], means: /^yes\s*$/ },
  // The last field is the leap status; an unsynchronised chronyd says "Not synchronised".
  { file: 'chronyc', args: ['-n', '-c', 'tracking'], means: /,(Normal|Insert second|Delete second)\s*$/ },
  { file: 'adjtimex', args: ['--print'], means: /return value\s*[:=]\s*[0-4]\b/ },
  { file: 'busybox', args: ['adjtimex'], means: /return value\s*[:=]\s*[0-4]\b/ },
]
/** Less is the error of reading two clocks one after the other. */
const sleptFromMs = 2000

/** Where the real system keeps them; `folders` are searched for the programs. */
export type SystemPlaces = {
  folders: readonly string[]
  markerPath: string
  commandMs: number
  /** As the environment has it; null where it does not. */
  bootId: string | null
}

export function realPlaces(env: NodeJS.ProcessEnv): SystemPlaces {
  // A service may run without the folders of the administrator in its PATH.
  const folders = [...(env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin']
  const hex = env['TELEMETRY_GATEWAY_BOOT_ID'] ?? ''
  // systemd writes it without dashes.
  const parts = /^(.{8})(.{4})(.{4})(.{4})(.{12})$/.exec(/^[0-9a-f]{32}$/.test(hex) ? hex : '')
  const bootId = parts?.slice(1).join('-') ?? null
  return { folders, markerPath: '/run/systemd/timesync/synchronized', commandMs: 3000, bootId }
}

export function systemKernelClock({
  folders,
  markerPath,
  commandMs,
  bootId: given,
}: SystemPlaces): KernelClock {
  const bootId = readBootId(given)
  let installed: Promise<readonly Command[]> | null = null
  return { bootId, sleptMs, isSynchronised }

  async function isSynchronised(steppedAt: number | null): Promise<boolean> {
    // Starting a process that does not exist costs as much as one that does.
    installed ??= installedIn(folders)
    let isAnswered = false
    for (const { file, args, means } of await installed) {
      const answer = await outputOf(file, args, commandMs)
      if (answer === null) continue
      if (means.test(answer)) return true
      isAnswered = true
    }
    return !isAnswered && isMarkedSince(markerPath, steppedAt)
  }
}

/**
 * The unit passes it, because it hides /proc/sys. A random one stands in where the system has none: the
 * arrivals of this process can be corrected then.
 */
function readBootId(given: string | null): string {
  if (given !== null) return given
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    // Only Linux has it.
    return randomUUID()
  }
}

/** The time since the start includes sleep on Linux. A container may show its own, which is shorter. */
function sleptMs(): number {
  const slept = uptime() * 1000 - systemClock.monotonic()
  return process.platform === 'linux' && slept >= sleptFromMs ? slept : 0
}

async function installedIn(folders: readonly string[]): Promise<readonly Command[]> {
  const found: Command[] = []
  for (const command of commands)
    for (const folder of folders) {
      const file = join(folder, command.file)
      if (!(await isExecutable(file))) continue
      found.push({ ...command, file })
      break
    }
  return found
}

async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK)
    return true
  } catch {
    // It is not there, or it is not ours to run.
    return false
  }
}

/** Null where the command fails or takes too long. */
function outputOf(file: string, args: readonly string[], commandMs: number): Promise<string | null> {
  return new Promise((resolve) => {
    execFile(
      file,
      args,
      { timeout: commandMs, killSignal: 'SIGKILL', maxBuffer: 65_536 },
      (error, stdout) => {
        resolve(error === null ? stdout : null)
      },
    )
  })
}

async function isMarkedSince(markerPath: string, steppedAt: number | null): Promise<boolean> {
  try {
    const { mtimeMs } = await stat(markerPath)
    return steppedAt === null || mtimeMs > steppedAt
  } catch {
    // systemd-timesyncd does not run here, or has not synchronised yet.
    return false
  }
}
