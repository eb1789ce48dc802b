// clock.ts: the clock that every part receives as a parameter, so that tests can move time instead of
// sleeping.
//
// now() wall clock, epoch milliseconds: for values that leave the process (timestamps, ages after a restart)
// monotonic() never steps: for timers, rates and back-off. That of the system starts with the machine, so
//           that times of several processes can be compared until the next boot

/** Milliseconds since 1970-01-01T00:00:00Z. */
export type EpochMs = number

/** Cancels a timer. Has no effect after it fired. */
export type CancelTimer = () => void

export type Clock = {
  now(): EpochMs
  /** Milliseconds since an arbitrary start. */
  monotonic(): number
  /** Calls `fire` once after `delayMs`. The timer does not keep the process alive. */
  after(delayMs: number, fire: () => void): CancelTimer
}

const timeoutMaxMs = 2 ** 31 - 1

/** When this process started, on the monotonic clock of the machine. */
const processStartMs = sinceBootMs() - performance.now()

function sinceBootMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1000 + nanoseconds / 1e6
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => processStartMs + performance.now(),
  after(delayMs, fire) {
    let timer: NodeJS.Timeout
    const arm = (restMs: number) => {
      // Node fires at once when the delay is above this limit (about 25 days).
      const longer = restMs > timeoutMaxMs
      timer = longer
        ? setTimeout(() => arm(restMs - timeoutMaxMs), timeoutMaxMs)
        : setTimeout(fire, Math.max(0, restMs))
      timer.unref()
    }
    arm(delayMs)
    return () => clearTimeout(timer)
  },
}

/** Rare looks fall on multiples of it, so that one wake-up of an idle process serves all of them. */
const gridMs = 1000
/** A timer may fire so much early: it must not fire for the same second again. */
const earlyMs = 20

/**
 * Calls `work` again and again, each time `everyMs` after it has ended, until the returned function is
 * called. With a second or more it is called up to a second earlier, on a full second of the monotonic clock.
 * What `work` returns never rejects.
 */
export function every(
  { after, monotonic }: Pick<Clock, 'after' | 'monotonic'>,
  everyMs: number,
  work: () => Promise<void> | void,
): CancelTimer {
  let isEnded = false
  let cancel = after(delayMs(), run)
  return () => {
    isEnded = true
    cancel()
  }

  function run(): void {
    const done = work()
    if (done instanceof Promise) void done.then(wait)
    else wait()
  }

  function wait(): void {
    if (!isEnded) cancel = after(delayMs(), run)
  }

  function delayMs(): number {
    if (everyMs < gridMs) return everyMs
    const nowMs = monotonic()
    const restMs = Math.floor((nowMs + everyMs) / gridMs) * gridMs - nowMs
    return Math.ceil(restMs < earlyMs ? restMs + gridMs : restMs)
  }
}

/** Resolves after `delayMs`, or at once with `false` when `signal` aborts. */
export function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve(false)
      return
    }
    const onAbort = () => {
      cancel()
      resolve(false)
    }
    const cancel = clock.after(delayMs, () => {
      signal.removeEventListener('abort', onAbort)
      resolve(true)
    })
    signal.addEventListener('abort', onAbort, { once: true })
  })
}

/** The zone of the machine, or that of TZ. */
const machineZone = process.env['TZ']

/**
 * All that people read and write without a zone is in this one from now on: `Date` and `Intl` follow the
 * variable. Undefined: that of the machine.
 */
export function useTimeZone(zone: string | undefined): void {
  const used = zone ?? machineZone
  if (used === undefined) delete process.env['TZ']
  else process.env['TZ'] = used
}

/** Its name in the IANA database. */
export function timeZone(): string {
  return zonedFormat().resolvedOptions().timeZone
}

export function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

let zoned: { zone: string | undefined; format: Intl.DateTimeFormat } | null = null

/** Made once for a zone: one takes 0.05 ms, and each HTTP response names the zone. */
function zonedFormat(): Intl.DateTimeFormat {
  const zone = process.env['TZ']
  if (zoned === null || zoned.zone !== zone)
    // The Swedish form is that of ISO 8601.
    zoned = { zone, format: new Intl.DateTimeFormat('sv', { dateStyle: 'short', timeStyle: 'long' }) }
  return zoned.format
}

/** `2026-11-23 14:03:20 CET`: for people, who always see the zone. `at`: also as ISO 8601. */
export function zonedTime(at: EpochMs | string): string {
  const time = new Date(at)
  return Number.isNaN(time.getTime()) ? String(at) : zonedFormat().format(time).replace('\u2212', '-')
}

const dayMs = 86_400_000
const digits = Array.from({ length: 1000 }, (_, number) => String(number).padStart(3, '0'))
/** Of the last time that was written: lists have thousands of times, most of one day. */
let isoDay = { from: Number.NaN, text: '' }

/** ISO 8601, as programs outside read times. */
export function isoTime(at: EpochMs): string {
  const ms = Math.floor(at) - isoDay.from
  // Not so without a day yet, nor for what is no time.
  if (!(ms >= 0 && ms < dayMs)) return isoTimeOfOtherDay(at)
  const two = (number: number) => digits[Math.floor(number)]!.slice(1)
  const [hours, minutes, seconds] = [ms / 3_600_000, (ms / 60_000) % 60, (ms / 1000) % 60]
  return `${isoDay.text}${two(hours)}:${two(minutes)}:${two(seconds)}.${digits[ms % 1000]!}Z`
}

function isoTimeOfOtherDay(at: EpochMs): string {
  const text = new Date(at).toISOString()
  // Years of more than four digits, and times before 1970, stay as they are.
  if (at >= 0 && text.length === 24) isoDay = { from: at - (at % dayMs), text: text.slice(0, 11) }
  return text
}

/**
 * A time in the name of a file: without colons, which some file systems and shells do not take. With
 * milliseconds, so that a step that is repeated at once gets another name.
 */
export function fileTime(at: EpochMs): string {
  return isoTime(at).slice(0, 23).replaceAll(/[:.]/g, '-')
}

export function isoTimeOrNull(at: EpochMs | null | undefined): string | null {
  return at === null || at === undefined ? null : isoTime(at)
}

export function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
