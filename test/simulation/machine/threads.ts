// threads.ts: the threads of the daemon, which run in this process (node/worker-threads.ts).

import type { EventEmitter } from 'node:events'

export type ThreadPort = EventEmitter & { postMessage(value: unknown, transfer?: ArrayBuffer[]): void }

/** `other`: the Worker of the daemon. */
type Thread = { port: ThreadPort; workerData: unknown; other: EventEmitter }

const started = new Map<number, Thread>()
let last = 0

export const threads = {
  add(thread: Thread): number {
    last += 1
    started.set(last, thread)
    return last
  },
  get: (number: number) => started.get(number),
  /** Those of an earlier machine. Their modules stay loaded, and keep nothing of the daemon. */
  forget() {
    for (const { port, other } of started.values()) {
      port.removeAllListeners()
      other.removeAllListeners()
    }
    started.clear()
  },
}
