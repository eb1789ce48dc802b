// disk-faults.ts: the faults that a simulation sets on the disk, and the counters of its calls.
//
// fail    the calls that match are refused with a code
// stall   the calls that match take longer, or wait until the fault ends. Only calls that return a promise:
//         virtual time cannot pass inside a synchronous one
// A `path` that is a text matches itself and everything below it. A call on a descriptor has the path under
// which it was opened.

import { systemError, type CallPlace, type DiskCall } from './system-error.ts'

type Matching = {
  call: DiskCall | RegExp
  path?: string | RegExp
  /** Matching calls that pass before the first one is struck. */
  after?: number
  /** Calls that are struck; without it all until the fault ends. */
  times?: number
}
export type Failure = Matching & { code: string }
/** Without `ms` the calls wait until the stall ends. */
export type Stall = Matching & { ms?: number }
export type EndFault = () => void

type Active<Kind> = { fault: Kind; passed: number; struck: number }
type ActiveStall = Active<Stall> & { waiting: (() => void)[] }

export class DiskFaults {
  readonly calls = new Map<string, number>()
  /** By call and code, such as `write ENOSPC` or `fsync stalled`. */
  readonly struck = new Map<string, number>()
  isReadOnly = false
  #failures: Active<Failure>[] = []
  #stalls: ActiveStall[] = []

  fail(fault: Failure): EndFault {
    const active = { fault, passed: 0, struck: 0 }
    this.#failures.push(active)
    return () => {
      this.#failures = this.#failures.filter((other) => other !== active)
    }
  }

  /** `wake`: runs what waited, in the process that waits. */
  stall(fault: Stall, wake: (run: () => void) => void): EndFault {
    const active: ActiveStall = { fault, passed: 0, struck: 0, waiting: [] }
    this.#stalls.push(active)
    return () => {
      this.#stalls = this.#stalls.filter((other) => other !== active)
      for (const run of active.waiting.splice(0)) wake(run)
    }
  }

  /** Counts the call, and throws where a fault strikes it: by `path`, or by the second path of the call. */
  strike(place: CallPlace, path: string): void {
    const { call } = place
    count(this.calls, call)
    for (const active of this.#failures) {
      if (!strikes(active, call, [path, place.dest ?? path])) continue
      throw this.refuse(active.fault.code, place)
    }
    if (this.isReadOnly && changing.has(call)) throw this.refuse('EROFS', place)
  }

  /** The error, counted. */
  refuse(code: string, place: CallPlace): Error {
    count(this.struck, `${place.call} ${code}`)
    return systemError(code, place)
  }

  /** The delay of a call in ms. Null: the call waits, and the end of the stall calls `run`. */
  delayMs(call: DiskCall, path: string, run: () => void): number | null {
    for (const active of this.#stalls) {
      if (!strikes(active, call, [path])) continue
      count(this.struck, `${call} stalled`)
      if (active.fault.ms !== undefined) return active.fault.ms
      active.waiting.push(run)
      return null
    }
    return 0
  }

  /** What waits belongs to a process that ended. */
  forgetWaiting(): void {
    for (const { waiting } of this.#stalls) waiting.length = 0
  }
}

/** Refused on a read-only file system. open() looks at its flags. */
const changing: ReadonlySet<string> = new Set<DiskCall>([
  'chmod',
  'copyfile',
  'db-write',
  'fchmod',
  'ftruncate',
  'futime',
  'lchown',
  'link',
  'mkdir',
  'mkdtemp',
  'rename',
  'rmdir',
  'symlink',
  'unlink',
  'utime',
  'write',
])

function strikes(active: Active<Matching>, call: DiskCall, paths: readonly string[]): boolean {
  const { fault } = active
  if (active.struck >= (fault.times ?? Infinity)) return false
  const isCall = typeof fault.call === 'string' ? fault.call === call : call.search(fault.call) >= 0
  if (!isCall || !paths.some((path) => isPath(fault.path, path))) return false
  active.passed += 1
  if (active.passed <= (fault.after ?? 0)) return false
  active.struck += 1
  return true
}

function isPath(wanted: string | RegExp | undefined, path: string): boolean {
  if (wanted === undefined) return true
  if (typeof wanted === 'string') return path === wanted || path.startsWith(`${wanted}/`)
  return path.search(wanted) >= 0
}

function count(counters: Map<string, number>, name: string): void {
  counters.set(name, (counters.get(name) ?? 0) + 1)
}
