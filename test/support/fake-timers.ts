// fake-timers.ts: fake timers for libraries that use those of Node themselves (aedes). Our own code takes a clock.

import { onTestFinished, vi } from 'vitest'

/** Until the end of the test, setTimeout waits for `vi.advanceTimersByTime`. Sockets and immediates stay real. */
export function useFakeTimers(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
}
