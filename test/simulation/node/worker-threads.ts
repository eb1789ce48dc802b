// worker-threads.ts: node:worker_threads: a thread is its module, loaded once more in this process. Messages are
// copied as between threads, and arrive a moment later.
//
// This module is loaded for each thread, with the number of the thread in its URL.

import { EventEmitter } from 'node:events'
import * as real from 'node:worker_threads'
import { machine } from '../machine/current.ts'
import { threads, type ThreadPort } from '../machine/threads.ts'

export * from 'node:worker_threads'

const own = threads.get(Number(new URL(import.meta.url).searchParams.get('thread') ?? -1)) ?? null

export const parentPort = own?.port ?? null
export const workerData: unknown = own?.workerData

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
    const number = threads.add({ port: this.port, workerData: options.workerData, other: this })
    const url = new URL(file)
    url.searchParams.set('thread', String(number))
    const loaded = import(url.href).then(
      () => this.started(),
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
    const copy =
      transfer.length === 0 && isPlain(value) ? copied(value) : structuredClone(value, { transfer })
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
  if (value instanceof Uint8Array || value instanceof Uint32Array || value instanceof SharedArrayBuffer)
    return true
  if (Array.isArray(value)) return value.every(isPlain)
  return Object.getPrototypeOf(value) === Object.prototype && Object.values(value).every(isPlain)
}

function copied(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || value instanceof SharedArrayBuffer) return value
  if (value instanceof Uint8Array || value instanceof Uint32Array)
    return value.buffer instanceof SharedArrayBuffer ? structuredClone(value) : value.slice()
  if (Array.isArray(value)) return value.map(copied)
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, copied(one)]))
}

const all = { ...real, parentPort, workerData, Worker }
export default all
export { all as 'module.exports' }
