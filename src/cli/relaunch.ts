// relaunch.ts: the memory settings of the daemon, which only a new process image can take.
//
// By itself V8 lets the space for young objects grow to 128 MB, and glibc keeps what large buffers leave behind: a
// busy daemon then holds 450 MB that it does not use, on a box that has one gigabyte. With these settings it
// holds half of that. They are set here and not in a unit file, so that they hold however it is started. The process
// replaces itself (execve): same pid, same standard streams, nothing has been opened yet.

/**
 * In MB. A small young generation keeps its pauses short; a heap that starts at what a busy daemon needs is not marked
 * every two seconds, which would hold acks for 8 ms each time.
 */
const v8Flags = ['--max-semi-space-size=8', '--initial-heap-size=48']

/**
 * Buffers of whole chunks are mapped and given back one by one, what a socket reads (64 KiB) is not: a page that is new
 * each time costs more than the message in it. One arena is enough, and wastes least.
 */
const mallocSettings = {
  MALLOC_ARENA_MAX: '1',
  MALLOC_MMAP_THRESHOLD_: '131072',
  MALLOC_TRIM_THRESHOLD_: '262144',
}

const tunedCommands = ['run', 'trial']

/** Does not return where the settings were missing and could be made. */
export function relaunchForMemory(argv: readonly string[]): void {
  const command = argv.find((word) => !word.startsWith('-')) ?? ''
  if (!tunedCommands.includes(command) || process.platform !== 'linux' || process.execve === undefined) return
  // Whoever gave settings of their own keeps them.
  const named = [...process.execArgv, ...(process.env['NODE_OPTIONS'] ?? '').split(' ')]
  if (named.some((flag) => flag.startsWith('--max-semi-space-size'))) return
  const [script = ''] = process.argv.slice(1)
  const args = [process.execPath, ...v8Flags, ...process.execArgv, script, ...argv]
  process.execve(process.execPath, args, { ...mallocSettings, ...process.env })
}
