// timers-promises.ts: node:timers/promises in virtual time.

import * as timers from '../machine/globals.ts'

type Options = { signal?: AbortSignal }

export const setTimeout = (ms?: number, value?: unknown, { signal }: Options = {}) =>
  waited((done) => timers.setTimeout(done, ms), value, signal)

export const setImmediate = (value?: unknown, { signal }: Options = {}) =>
  waited((done) => timers.setImmediate(done), value, signal)

function waited(
  start: (done: () => void) => { close(): unknown },
  value: unknown,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const aborted = () => {
      timer.close()
      reject(new DOMException('The operation was aborted', 'AbortError'))
    }
    const timer = start(() => {
      signal?.removeEventListener('abort', aborted)
      resolve(value)
    })
    if (signal?.aborted) aborted()
    else signal?.addEventListener('abort', aborted, { once: true })
  })
}

const all = { setTimeout, setImmediate }
export default all
export { all as 'module.exports' }
