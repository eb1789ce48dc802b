// conditions.ts: conditions of the disk are open exactly while their causes hold: within 30 s of a cause, if the gateway
// ran all the time, and no longer than 2 minutes after it.

import { spoolPath, type Daemon } from '../daemon.ts'
import type { Machine } from '../machine/machine.ts'

export type Causes = {
  /** An act on the disk begins; the returned function ends it. Several at once hide what each causes. */
  act(end: (() => void) | undefined): (() => void) | undefined
  /** What begins now must be a condition; `end` ends it. Within an act. */
  hold(cause: Cause, end: (() => void) | undefined): (() => void) | undefined
}

const codes = {
  'hanging writes': ['SPOOL_WRITE_HANGING', 'STORE_LOST', 'SPOOL_UNUSABLE'],
  'low disk': ['DISK_LOW', 'SPOOL_UNUSABLE', 'STORE_LOST'],
  'spool away': ['STORE_LOST', 'SPOOL_UNUSABLE', 'SPOOL_WRITE_HANGING'],
} as const
export type Cause = keyof typeof codes

const ofDisk = ['SPOOL_WRITE_HANGING', 'STORE_LOST', 'SPOOL_UNUSABLE', 'DISK_LOW', 'MARK_UNWRITABLE']
const openWithinMs = 30_000
const closedWithinMs = 120_000
const everyMs = 5000

type Deps = { machine: Machine; daemon: Daemon; broken: string[] }

export function createCauses({ machine, daemon, broken }: Deps): Causes {
  const { kernel } = machine
  let acting = 0
  let changes = 0
  let ended: Cause | null = null
  return { act, hold }

  function act(end: (() => void) | undefined): (() => void) | undefined {
    if (end === undefined) return undefined
    acting += 1
    changes += 1
    let isOver = false
    return () => {
      end()
      if (isOver) return
      isOver = true
      acting -= 1
      changes += 1
      if (acting === 0 && ended !== null) expectClosed(ended)
      ended = null
    }
  }

  function hold(cause: Cause, end: (() => void) | undefined): (() => void) | undefined {
    if (end === undefined) return undefined
    let isOver = false
    watch(cause, () => isOver)
    return () => {
      end()
      isOver = true
      ended = cause
    }
  }

  /** Alone and with a gateway that runs, for as long as the gateway has to say so. */
  function watch(cause: Cause, isOver: () => boolean): void {
    const { life } = kernel
    let change = 0
    let readySinceMs: number | null = null
    let busySinceMs: number | null = null
    const look = () => {
      if (isOver() || life !== kernel.life || change !== changes || acting > 1) return
      const now = kernel.monotonicMs
      const status = daemon.gateway?.status()
      readySinceMs = status === undefined ? null : (readySinceMs ?? now)
      // Not those of the ledger, which holds nobody.
      const isBusy = [...machine.runningWrites].some(({ path }) => path === `${spoolPath}/store`)
      busySinceMs = isBusy ? (busySinceMs ?? now) : null
      const sinceMs = cause === 'hanging writes' ? busySinceMs : readySinceMs
      if (status !== undefined && sinceMs !== null && now - sinceMs > openWithinMs) {
        const wanted: readonly string[] = codes[cause]
        if (!status.conditions.some(({ code }) => wanted.includes(code)))
          broken.push(`${(now / 1000).toFixed(3)}: ${cause}, and none of ${wanted.join(', ')} is open`)
        return
      }
      kernel.at(everyMs, look)
    }
    kernel.at(everyMs, () => {
      change = changes
      look()
    })
  }

  function expectClosed(cause: Cause): void {
    const { life } = kernel
    const change = changes
    kernel.at(closedWithinMs, () => {
      const gateway = daemon.gateway
      if (life !== kernel.life || change !== changes || gateway === null) return
      for (const { code, what } of gateway.status().conditions)
        if (ofDisk.includes(code))
          broken.push(
            `${(kernel.monotonicMs / 1000).toFixed(3)}: ${cause} ended 2 minutes ago, and ${code} is open: ${what}`,
          )
    })
  }
}
