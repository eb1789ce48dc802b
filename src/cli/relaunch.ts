// relaunch.ts: restarts `run` and `trial` with settings of V8, malloc and libuv that only a new process image
// can take.
//
// By default V8 lets the young generation grow to 128 MB, and glibc does not return freed large buffers: a
// busy daemon holds 450 MB that it does not use, on a machine with one gigabyte. With these settings it holds
// half. They are here and not in a unit file, so that they apply however the daemon is started. The process
// replaces itself (execve): same pid and standard streams; nothing is open yet.

import { setFlagsFromString } from 'node:v8'

/**
 * Bytes of bytecode that the optimizing compiler copies into one function from those that it calls. The
 * limit of V8, 920, is reached in the middle of the mapping of a message. With 2000, a message costs 5
 * percent less. More is no faster.
 */
const inlining = '--max-inlined-bytecode-size-cumulative=2000'

/**
 * Sizes are in MB. A small young generation keeps its pauses short. A heap that starts at the size that a
 * busy daemon needs is not marked every two seconds, which would hold acknowledgements for 8 ms each time.
 * It is collected when it has grown by half, and not only when it has doubled: a flood of messages then takes
 * 60 MB, and not 200; a large heap is collected earlier (app/heap-growth.ts). With 40 percent, a busy daemon
 * spends a tenth of its processor time on that; with 75, and with blocks up to 512 KiB that are not mapped
 * one by one (below), a message costs 5 percent less and the daemon holds 80 MB more. The daemon collects by
 * itself after a burst (heap-release.ts).
 */
const v8Flags = [
  '--max-semi-space-size=8',
  '--initial-heap-size=48',
  '--heap-growing-percent=50',
  '--expose-gc',
  inlining,
]

/**
 * Buffers of whole chunks are mapped and freed one by one; those of each message are not, because a page that
 * is new each time costs more than the message in it. Sockets of devices are read into one buffer
 * (shared-read-buffer.ts). One arena is enough and wastes least.
 */
const mallocSettings = {
  MALLOC_ARENA_MAX: '1',
  MALLOC_MMAP_THRESHOLD_: '131072',
  MALLOC_TRIM_THRESHOLD_: '262144',
}

/**
 * Each kind of work with the disk of the spool can hold one thread of the pool of Node while that disk hangs.
 * Names are looked up in the same threads, and alerts must leave: with the default of four, none does.
 */
const poolSettings = { UV_THREADPOOL_SIZE: '16' }

const tunedCommands = ['run', 'trial']

/**
 * V8 gives the sizes of the flags to each thread that starts later, and ignores its `resourceLimits`. The
 * flags are read when a heap is made; without them, each thread has the limits that it is given.
 */
function sizesForMainThreadOnly(): void {
  setFlagsFromString('--max-semi-space-size=0')
  setFlagsFromString('--initial-heap-size=0')
}

/** Does not return where it applies the settings. */
export function relaunchWithSettings(argv: readonly string[]): void {
  const command = argv.find((word) => !word.startsWith('-')) ?? ''
  if (!tunedCommands.includes(command) || process.platform !== 'linux' || process.execve === undefined) return
  // Settings of the user stay: for the main thread, since each other one has limits of its own.
  const named = [...process.execArgv, ...(process.env['NODE_OPTIONS'] ?? '').split(' ')]
  if (named.some((flag) => flag.startsWith('--max-semi-space-size'))) {
    sizesForMainThreadOnly()
    return
  }
  const [script = ''] = process.argv.slice(1)
  const args = [process.execPath, ...v8Flags, ...process.execArgv, script, ...argv]
  process.execve(process.execPath, args, { ...mallocSettings, ...poolSettings, ...process.env })
}
