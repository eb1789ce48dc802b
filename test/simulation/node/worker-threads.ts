// worker-threads.ts: node:worker_threads: a thread is a call of `serve`, which its module exports, in this process.
// Messages are copied as between threads, and arrive a moment later.

import { EventEmitter } from 'node:events'
import * as real from 'node:worker_threads'
import { machine } from '../machine/current.ts'
import { threads, type ThreadPort } from '../machine/threads.ts'

export * from 'node:worker_threads'

export const parentPort = null
export const workerData: unknown = undefined

type ThreadModule = { serve(port: ThreadPort, workerData: unknown): void | Promise<void> }

const messageMs = 0.02

export class Worker extends EventEmitter {
  private readonly port: ThreadPort
  private readonly life = machine().kernel.life
  private isEnded = false

  constructor(file: URL, options: { workerData?: unknown } = {}) {
    super()
    this.port = Object.assign(new EventEmitter(), {
      postMessage: (value: unknown, transfer?: ArrayBuffer[]) =>
        this.send(value, transfer, (copy) => this.emit('message', copy)),
      close: () => this.ends(0),
      ref: () => undefined,
      unref: () => undefined,
      start: () => undefined,
    })
    threads.add({ port: this.port, other: this })
    const loaded = import(file.href).then(
      ({ serve }: ThreadModule) => {
        // Not awaited: a check reads files of the machine, which waits for this.
        void Promise.resolve(serve(this.port, options.workerData)).catch((error: unknown) =>
          this.emit('error', error),
        )
        this.started()
      },
      (error: unknown) => this.emit('error', error),
    )
    machine().kernel.hold(loaded)
  }

  private waiting: (() => void)[] | null = []

  private started(): void {
    const waiting = this.waiting ?? []
    this.waiting = null
    for (const send of waiting) send()
  }

  postMessage(value: unknown, transfer?: ArrayBuffer[]): void {
    const send = () => this.send(value, transfer, (copy) => this.port.emit('message', copy))
    if (this.waiting === null) send()
    else this.waiting.push(send)
  }

  private send(value: unknown, transfer: ArrayBuffer[] = [], arrived: (copy: unknown) => void): void {
    if (this.isEnded || this.life !== machine().kernel.life) return
    const copy = isPlain(value) ? copied(value) : structuredClone(value)
    // The sender has them no longer.
    for (const buffer of transfer) buffer.transfer()
    machine().kernel.schedule(messageMs, () => {
      if (!this.isEnded) arrived(copy)
    })
  }

  private ends(code: number): void {
    if (this.isEnded) return
    this.isEnded = true
    machine().kernel.schedule(0, () => this.emit('exit', code))
  }

  terminate(): Promise<number> {
    return new Promise((resolve) => {
      this.isEnded = true
      machine().kernel.schedule(0, () => {
        this.emit('exit', 1)
        resolve(1)
      })
    })
  }

  ref(): void {}

  unref(): void {}
}

/** Plain objects and arrays of texts, numbers and bytes: structuredClone() of these costs ten times as much. */
function isPlain(value: unknown): boolean {
  if (typeof value !== 'object' || value === null)
    return typeof value !== 'function' && typeof value !== 'symbol'
  if (isBytes(value) || value instanceof SharedArrayBuffer || value instanceof ArrayBuffer) return true
  if (Array.isArray(value)) return value.every(isPlain)
  return Object.getPrototypeOf(value) === Object.prototype && Object.values(value).every(isPlain)
}

function isBytes(value: object): value is Uint8Array | Uint32Array {
  return value instanceof Uint8Array || value instanceof Uint32Array
}

function copied(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || value instanceof SharedArrayBuffer) return value
  if (value instanceof ArrayBuffer) return value.slice(0)
  if (isBytes(value))
    return value.buffer instanceof SharedArrayBuffer ? structuredClone(value) : value.slice()
  if (Array.isArray(value)) return value.map(copied)
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, copied(one)]))
}

const all = { ...real, parentPort, workerData, Worker }
export default all
export { all as 'module.exports' }
