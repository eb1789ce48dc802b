// threads.ts: the threads of the daemon, which run in this process (node/worker-threads.ts).

import type { EventEmitter } from 'node:events'

export type ThreadPort = EventEmitter & { postMessage(value: unknown, transfer?: ArrayBuffer[]): void }

/** `other`: the Worker of the daemon. */
type Thread = { port: ThreadPort; other: EventEmitter }

const started = new Set<Thread>()

export const threads = {
  add: (thread: Thread) => void started.add(thread),
  /** Those of an earlier machine. */
  forget() {
    for (const { port, other } of started) {
      port.removeAllListeners()
      other.removeAllListeners()
    }
    started.clear()
  },
}
