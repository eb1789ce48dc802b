// kernel.ts: virtual time, and what happens at which moment of it. Everything that waits in the simulation
// waits here: the timers of the daemon and of its packages, calls of its disk, bytes on its network, the
// devices, the service and the faults.
//
//   schedule()  belongs to the process of the daemon: with its end nothing of it happens any more
//   at()        belongs to the world outside
//
// One thing happens at a time. After each, all promises that it made ready run, before the next moment comes;
// so the order depends on the seed alone. Two things of the same moment happen in the order in which they
// were scheduled.

import { realImmediate, runTicks } from './real-time.ts'

/** Has no effect after it happened. */
export type Cancel = () => void

export type Kernel = {
  /** Milliseconds since the machine was switched on. Never steps. */
  readonly monotonicMs: number
  /** The wall clock of the machine. */
  readonly wallMs: number
  /** Sets it forward, or back. */
  stepWall(byMs: number): void
  /** The true time, for devices and the service. */
  readonly trueMs: number
  schedule(delayMs: number, run: () => void): Cancel
  at(delayMs: number, run: () => void): Cancel
  /** Nothing of this machine happens any more, and nothing is kept for it. */
  switchOff(): void
  /** The process of the daemon ends now: what it scheduled never happens, and what it still does has no effect. */
  endProcess(): void
  /** Counts the processes. What belongs to another one than the present one is dead. */
  readonly life: number
  /** The process is dead, and the rest of its present turn still runs. */
  readonly isEnding: boolean
  /** What happens within so long is in one turn: what was scheduled first comes first. 0: each alone. */
  turnMs: number
  /** Called with what the process of the daemon threw. */
  uncaught: (error: unknown) => void
  /** No further moment comes before this real work has ended: the load of a module. */
  hold(work: Promise<unknown>): void
  /** Calls `run` after so many further events, at no time of its own: between two steps of what goes on. */
  afterEvents(count: number, run: () => void): void
  /** Ends when `done` holds, at the latest after `limitMs` of virtual time. */
  run(limitMs: number, done?: () => boolean): Promise<void>
  readonly counters: { events: number }
}

type Entry = { atMs: number; order: number; life: number; run: (() => void) | null }

/** Life of what belongs to the world. */
const world = -1

/** More in one virtual second is a loop that does not end. */
const eventsPerSecondMax = 200_000

export function createKernel(startMs: number): Kernel {
  const heap = createHeap()
  const counters = { events: 0 }
  const holding = new Set<Promise<unknown>>()
  let interruptions: { at: number; run: () => void }[] = []
  let monotonicMs = 1000
  let wallOffsetMs = 0
  let order = 0
  let life = 1
  let isEnding = false
  let second = { at: 0, events: 0 }

  const kernel: Kernel = {
    turnMs: 0,
    uncaught(error) {
      throw error
    },
    get monotonicMs() {
      return monotonicMs
    },
    get wallMs() {
      return startMs + monotonicMs + wallOffsetMs
    },
    stepWall(byMs) {
      wallOffsetMs += byMs
    },
    get trueMs() {
      return startMs + monotonicMs
    },
    schedule: (delayMs, run) => (isEnding ? () => undefined : add(delayMs, run, life)),
    at: (delayMs, run) => add(delayMs, run, world),
    switchOff() {
      heap.clear()
      interruptions = []
      kernel.uncaught = () => undefined
    },
    endProcess() {
      life += 1
      isEnding = true
    },
    get life() {
      return life
    },
    get isEnding() {
      return isEnding
    },
    hold(work) {
      const held = work.catch(() => undefined).finally(() => holding.delete(held))
      holding.add(held)
    },
    afterEvents(count, run) {
      interruptions.push({ at: counters.events + count, run })
    },
    run,
    counters,
  }
  return kernel

  function add(delayMs: number, run: () => void, owner: number): Cancel {
    const dueMs = monotonicMs + Math.max(0, delayMs)
    const { turnMs } = kernel
    const atMs = turnMs === 0 ? dueMs : Math.ceil(dueMs / turnMs) * turnMs
    const entry: Entry = { atMs, order: (order += 1), life: owner, run }
    heap.push(entry)
    return () => {
      entry.run = null
    }
  }

  /** In one turn of the real event loop, as long as nothing of the real world must be waited for. */
  async function run(limitMs: number, done: () => boolean = () => false): Promise<void> {
    const untilMs = monotonicMs + limitMs
    for (;;) {
      while (holding.size > 0) await Promise.all(holding)
      const hasEnded = await new Promise<boolean>((resolve, reject) => {
        realImmediate(() => {
          try {
            resolve(runMoments(untilMs, done))
          } catch (error) {
            reject(error)
          }
        })
      })
      if (hasEnded) return
    }
  }

  /** False where real work holds the next moment. */
  function runMoments(untilMs: number, done: () => boolean): boolean {
    settle()
    while (holding.size === 0) {
      if (interruptions.length > 0 && interrupt()) continue
      if (done()) return true
      const next = heap.first()
      if (next === undefined || next.atMs > untilMs) {
        monotonicMs = untilMs
        return true
      }
      heap.shift()
      const { run } = next
      if (run === null || (next.life !== world && next.life !== life)) continue
      monotonicMs = Math.max(monotonicMs, next.atMs)
      count()
      if (next.life === world) run()
      else runOfProcess(run)
      settle()
    }
    return false
  }

  /** What it throws and nobody catches ends its process, and not the world. */
  function runOfProcess(run: () => void): void {
    try {
      run()
    } catch (error) {
      kernel.uncaught(error)
    }
  }

  /** Whether something was due. */
  function interrupt(): boolean {
    const due = interruptions.filter(({ at }) => at <= counters.events)
    if (due.length === 0) return false
    interruptions = interruptions.filter(({ at }) => at > counters.events)
    for (const { run } of due) run()
    settle()
    return true
  }

  /** Promises and ticks of the present turn run. */
  function settle(): void {
    for (;;) {
      try {
        runTicks()
        break
      } catch (error) {
        kernel.uncaught(error)
      }
    }
    // What the dead process loads is still awaited, and it goes on after that.
    if (holding.size === 0) isEnding = false
  }

  function count(): void {
    counters.events += 1
    const at = Math.floor(monotonicMs / 1000)
    second = at === second.at ? { at, events: second.events + 1 } : { at, events: 1 }
    if (second.events > eventsPerSecondMax)
      throw new Error(`more than ${eventsPerSecondMax} events within one second of virtual time`)
  }
}

/** A binary heap by time, then by order. */
function createHeap() {
  const entries: Entry[] = []
  const isBefore = (one: Entry, other: Entry) =>
    one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order)
  return {
    first: () => entries[0],
    clear: () => void (entries.length = 0),
    push(entry: Entry) {
      let place = entries.length
      entries.push(entry)
      while (place > 0) {
        const above = (place - 1) >> 1
        const parent = entries[above]!
        if (!isBefore(entry, parent)) break
        entries[place] = parent
        place = above
      }
      entries[place] = entry
    },
    shift() {
      const last = entries.pop()
      if (last === undefined || entries.length === 0) return
      let place = 0
      for (;;) {
        let below = 2 * place + 1
        if (below >= entries.length) break
        if (below + 1 < entries.length && isBefore(entries[below + 1]!, entries[below]!)) below += 1
        if (!isBefore(entries[below]!, last)) break
        entries[place] = entries[below]!
        place = below
      }
      entries[place] = last
    },
  }
}
