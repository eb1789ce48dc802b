// refused-spool.ts: opens the spool, and keeps the daemon up where that is impossible. Refusing is not
// exiting: a restart does not repair files, and the operator needs the answers of ops.
//
//   SPOOL_DAMAGED    tried again when a file of the store has changed, as `spool repair` changes them, and
//                    after 2 min, doubling to 1 h: a disk may read again what it could not
//   the disk is full or read-only, or reports an error    tried again after 1 s, doubling to 30 s
//   the store is not at its path, or another one is    the same
//   another process uses the spool, a newer version wrote it, the path or its permissions are wrong,
//   it is in memory
//                    the start fails. Once this process has had the spool, or waits for it, it stays up: the
//                    path may be unmounted, and a repair may hold the lock

import { join } from 'node:path'
import { pause, type Clock } from '../std/clock.ts'
import { GatewayError, type ErrorCode } from '../std/gateway-error.ts'
import type { OurTime } from '../domain/arrival.ts'
import type { Emit } from '../domain/event.ts'
import type { Config } from '../config/config.ts'
import type { Ops } from '../ops/ops.ts'
import { openSpool, storeChanged, storeSignature } from '../spool/spool.ts'
import type { Spool, SpoolOptions, StoreMemory } from '../spool/spool.ts'
import { spoolOptions } from '../spool/config.ts'
import type { BackfillRule } from './backfill-rule.ts'
import type { KernelClock } from './kernel-clock.ts'

type Deps<Opened> = {
  clock: Clock
  emit: Emit
  /** Opens the spool, and what needs it. */
  open: () => Promise<Opened>
  /** The spool is refused from now on, or again after an attempt. */
  refused: (fault: GatewayError) => void
}

/** Attempts in a row that follow at once, because files changed during the one before. */
const changesMax = 2
const retryMs = { first: 1000, most: 30_000 }
/** The check reads all tables, and `spool repair` cannot begin meanwhile. */
const checkAgainMs = { first: 120_000, most: 3_600_000 }

/** The person who starts the daemon must change something first. */
const endsStart: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'SPOOL_LOCKED',
  'SPOOL_VERSION',
  'SPOOL_IN_MEMORY',
  'SPOOL_PERMISSION',
  'SPOOL_PATH_MISSING',
  'SPOOL_NOT_DIRECTORY',
  'SPOOL_PATH_INVALID',
])

export function isSpoolFault(error: unknown): error is GatewayError {
  return error instanceof GatewayError && error.code.startsWith('SPOOL_')
}

/** Resolves with null when `signal` aborts. Rejects with a fault that ends the start. */
export async function openSpoolOrWait<Opened>(
  { clock, emit, open, refused }: Deps<Opened>,
  { path: spoolPath, isStart }: { path: string; isStart: boolean },
  signal: AbortSignal,
): Promise<Opened | null> {
  let fault: GatewayError | null = null
  let delayMs = retryMs.first
  let changes = 0
  let checkAgain = checkAgainMs.first
  while (!signal.aborted) {
    const before = await storeSignature(spoolPath)
    try {
      return await open()
    } catch (error) {
      if (signal.aborted) return null
      if (!isSpoolFault(error) || (fault === null && isStart && endsStart.has(error.code))) throw error
      const isLocked = error.code === 'SPOOL_LOCKED'
      // A repair of what is refused holds the lock.
      if (fault === null || !isLocked) {
        if (error.code !== fault?.code || error.why !== fault.why)
          emit({ kind: 'spool_refused', fault: error })
        fault = error
      }
      refused(fault)
      const isDamaged = fault.code === 'SPOOL_DAMAGED' && !isLocked
      if (isDamaged) await changed(before)
      else await pause(clock, delayMs, signal)
      delayMs = isDamaged || isLocked ? retryMs.first : Math.min(delayMs * 2, retryMs.most)
    }
  }
  return null

  /** From before the attempt on, or a repair that ends while the attempt fails would not be noticed. */
  async function changed(before: string): Promise<void> {
    const now = await storeSignature(spoolPath)
    changes = now === before ? 0 : changes + 1
    // An attempt can change files itself: then only what follows counts.
    if (changes > 0 && changes <= changesMax) return
    changes = 0
    await storeChanged(clock, { spoolPath, before: now, forMs: checkAgain }, signal)
    checkAgain = Math.min(checkAgain * 2, checkAgainMs.most)
  }
}

/** Also passes on what the spool itself is given. */
type SpoolDeps = Omit<
  Parameters<typeof openSpool>[0],
  'isLate' | 'ourNow' | 'bootId' | 'onProgress' | 'signal'
> & {
  kernel: Pick<KernelClock, 'bootId'>
  backfillRule: Pick<BackfillRule, 'isLate'>
  ourTime: Pick<OurTime, 'now'>
  ops: Pick<Ops, 'starting'>
  env: NodeJS.ProcessEnv
  memory: StoreMemory
  spoolBounds?: Partial<SpoolOptions>
}

export function openSpoolOf(deps: SpoolDeps, config: Config, signal: AbortSignal): Promise<Spool> {
  const { kernel, ops, env, ourTime } = deps
  const { isLate } = deps.backfillRule
  const { max_payloads: payloadsMax, max_bytes: bytesMax } = config.delivery.batch
  const options = spoolOptions(config.spool, { payloadsMax, bytesMax }, config.ingest.ack_delay_max)
  return openSpool(
    { ...deps, isLate, ourNow: ourTime.now, bootId: kernel.bootId, onProgress: ops.starting, signal },
    { ...options, ...deps.spoolBounds, lastExitPath: lastExitPathOf(env, config.spool.path) },
  )
}

/** The unit of systemd notes how the process ended; STATE_DIRECTORY may be a list. */
function lastExitPathOf(env: NodeJS.ProcessEnv, spoolPath: string): string {
  const [folder = ''] = (env['STATE_DIRECTORY'] ?? '').split(':')
  return join(folder === '' ? spoolPath : folder, 'last-exit')
}
