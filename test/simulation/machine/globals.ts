// globals.ts: replaces what a program has without an import: timers, Date, performance, random numbers. Also
// for the packages of the daemon, so that nothing of it waits for real time.
//
// Installed before any module of the daemon is loaded, and never taken back: the process runs nothing else.

import './real-time.ts'
import { machine } from './current.ts'

type Callback = (...args: unknown[]) => void

/** As Node's: an object that a timer function returns, and a number. */
class Timer {
  readonly id = (lastId += 1)
  private cancel: () => void = () => undefined
  private readonly start: () => () => void
  private isReferenced = true

  constructor(start: (timer: Timer) => () => void) {
    this.start = () => start(this)
    this.refresh()
  }

  refresh(): this {
    this.cancel()
    this.cancel = this.start()
    return this
  }

  ended(): void {
    if (timers.size > 0) timers.delete(this.id)
  }

  close(): this {
    this.cancel()
    this.ended()
    return this
  }

  ref(): this {
    this.isReferenced = true
    return this
  }

  unref(): this {
    this.isReferenced = false
    return this
  }

  hasRef(): boolean {
    return this.isReferenced
  }

  [Symbol.toPrimitive](): number {
    timers.set(this.id, this)
    return this.id
  }

  [Symbol.dispose](): void {
    this.close()
  }
}

let lastId = 0
/** Those whose number was asked for. */
const timers = new Map<number, Timer>()

const delayOf = (ms: unknown) => {
  const delayMs = Number(ms)
  // Node takes anything else as one millisecond.
  return delayMs >= 1 && delayMs <= 2 ** 31 - 1 ? Math.trunc(delayMs) : 1
}

export function setTimeout(callback: Callback, ms?: number, ...args: unknown[]): Timer {
  const delayMs = delayOf(ms)
  return new Timer((timer) =>
    machine().kernel.schedule(delayMs, () => {
      timer.ended()
      callback(...args)
    }),
  )
}

export function setInterval(callback: Callback, ms?: number, ...args: unknown[]): Timer {
  const delayMs = delayOf(ms)
  return new Timer((timer) =>
    machine().kernel.schedule(delayMs, () => {
      timer.refresh()
      callback(...args)
    }),
  )
}

export function setImmediate(callback: Callback, ...args: unknown[]): Timer {
  return new Timer((timer) =>
    machine().kernel.schedule(0, () => {
      timer.ended()
      callback(...args)
    }),
  )
}

export function clearTimeout(timer: unknown): void {
  const found = timer instanceof Timer ? timer : timers.get(Number(timer))
  found?.close()
}

/** No timer and no signal of an earlier machine is left. */
export function forgetMachine(): void {
  timers.clear()
  for (const release of ofSignals.splice(0)) release()
}

/** Node keeps what AbortSignal.any() made while it has listeners, and with them all that they know. */
const ofSignals: (() => void)[] = []

const realAny = AbortSignal.any.bind(AbortSignal)

function anySignal(signals: AbortSignal[]): AbortSignal {
  const signal = realAny(signals)
  const add = signal.addEventListener.bind(signal)
  signal.addEventListener = (...given: Parameters<typeof add>) => {
    add(...given)
    ofSignals.push(() => signal.removeEventListener(given[0], given[1], given[2]))
  }
  return signal
}

const RealDate = globalThis.Date

class VirtualDate extends RealDate {
  constructor(...args: unknown[]) {
    if (args.length === 0) super(VirtualDate.now())
    else super(...(args as [number]))
  }

  static override now(): number {
    return Math.floor(machine().kernel.wallMs)
  }
}

export function installGlobals(): void {
  const names = {
    setTimeout,
    setInterval,
    setImmediate,
    clearTimeout,
    clearInterval: clearTimeout,
    clearImmediate: clearTimeout,
    Date: VirtualDate,
  }
  for (const [name, value] of Object.entries(names))
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true })
  const monotonicMs = () => machine().kernel.monotonicMs
  Object.defineProperty(globalThis.performance, 'now', { value: monotonicMs })
  const hrtime = (since?: [number, number]): [number, number] => {
    const ns = Math.round(monotonicMs() * 1e6) - (since === undefined ? 0 : since[0] * 1e9 + since[1])
    return [Math.floor(ns / 1e9), ns % 1e9]
  }
  hrtime.bigint = () => BigInt(Math.round(monotonicMs() * 1e6))
  process.hrtime = hrtime
  Object.defineProperty(process, 'pid', { value: 4242 })
  process.uptime = () => monotonicMs() / 1000
  process.cpuUsage = () => ({ user: 0, system: 0 })
  Math.random = () => machine().random.next()
  AbortSignal.timeout = (ms) => {
    const controller = new AbortController()
    setTimeout(() => controller.abort(new DOMException('The operation timed out.', 'TimeoutError')), ms)
    return controller.signal
  }
  AbortSignal.any = anySignal
  crypto.randomUUID = seededUuid
}

/** Of version 4. */
export function seededUuid(): ReturnType<typeof crypto.randomUUID> {
  const bytes = seededBytes(16)
  bytes[6] = (bytes[6]! & 0x0f) | 0x40
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** Of a long one the first bytes, again and again: nobody looks at them, and a ballast of one MiB takes 5 ms. */
export function seededBytes(length: number): Buffer {
  const { random } = machine()
  const bytes = Buffer.alloc(length)
  const drawn = Math.min(length, drawnBytesMax)
  for (let index = 0; index < drawn; index += 1) bytes[index] = random.below(256)
  random.skip(length - drawn)
  return drawn === length ? bytes : bytes.fill(bytes.subarray(0, drawn), drawn)
}

const drawnBytesMax = 4096
