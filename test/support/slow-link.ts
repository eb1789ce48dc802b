// slow-link.ts: a link of few bytes per second that several uploads share evenly, on the clock of the test.

import type { Clock } from '../../src/std/clock.ts'

type Upload = { left: number; deadlineMs: number; done: (left: number) => void }

export type SlowLink = {
  /** Resolves with the bytes that were carried: all of them, or those before the deadline or the stop. */
  carry(bytes: number, timeoutMs: number, stop: AbortSignal): Promise<number>
}

const stepMs = 100

export function createSlowLink({ clock }: { clock: Clock }, bytesPerS: number): SlowLink {
  const uploads = new Set<Upload>()
  let isRunning = false

  function step(): void {
    isRunning = uploads.size > 0
    if (!isRunning) return
    const share = (bytesPerS * stepMs) / 1000 / uploads.size
    for (const upload of uploads) {
      upload.left -= share
      if (upload.left > 0 && clock.monotonic() < upload.deadlineMs) continue
      uploads.delete(upload)
      upload.done(Math.max(0, upload.left))
    }
    clock.after(stepMs, step)
  }

  return {
    carry(bytes, timeoutMs, stop) {
      return new Promise((resolve) => {
        const deadlineMs = clock.monotonic() + timeoutMs
        const upload: Upload = { left: bytes, deadlineMs, done: (left) => resolve(Math.floor(bytes - left)) }
        uploads.add(upload)
        const onStop = () => {
          uploads.delete(upload)
          upload.done(upload.left)
        }
        stop.addEventListener('abort', onStop, { once: true })
        if (isRunning) return
        isRunning = true
        clock.after(stepMs, step)
      })
    },
  }
}
