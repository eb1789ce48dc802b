// name-lookup.ts: resolves names of receivers, at most two at a time in the process.
//
// getaddrinfo has the thread pool of Node, 16 threads in the daemon, which writes to the spool need, too. It
// cannot be ended, and takes half a minute where no name server answers: that is where the uplink is dead,
// and alerts are tried most. The other threads stay for the others.
//
// Those beyond two wait, at most 64. One that has waited for 30 s, or finds 64 waiting, fails as where no
// name server answers; its try has mostly ended before.

import { lookup as dnsLookup } from 'node:dns'
import type { LookupFunction } from 'node:net'

const runningMax = 2
const waitingMax = 64
const waitMaxMs = 30_000

export function createNameLookup(resolve: LookupFunction): LookupFunction {
  const waiting: { sinceMs: number; run: () => void; fail: () => void }[] = []
  let running = 0

  return (hostname, options, callback) => {
    const fail = () => {
      const error = Object.assign(new Error(`too many names wait for a name server: ${hostname}`), {
        code: 'EAI_AGAIN',
      })
      callback(error, [])
    }
    const run = () => {
      running += 1
      resolve(hostname, options, (...found) => {
        running -= 1
        next()
        callback(...found)
      })
    }
    if (running < runningMax) run()
    else if (waiting.length < waitingMax) waiting.push({ sinceMs: performance.now(), run, fail })
    else process.nextTick(fail)
  }

  function next(): void {
    for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) {
      if (performance.now() - one.sinceMs < waitMaxMs) {
        one.run()
        return
      }
      one.fail()
    }
  }
}

/** One for the process, because its threads are. */
export const lookupName: LookupFunction = createNameLookup(dnsLookup)
