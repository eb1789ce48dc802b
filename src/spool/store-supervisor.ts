// store-supervisor.ts: keeps one spool alive over the failures of its store, and judges whether messages may come in.
//
//   open -> (a write fails) -> lost -> close, pause, open again -> open
//                                  '-> gives up after `attemptsMax` openings in a row
//
// Why intake is held stands in intake-limits.ts. It resumes by itself. The limit stops intake only: settles use the reserve.

import { join } from 'node:path'
import { pause } from '../std/clock.ts'
import { codeOf, GatewayError, messageOf } from '../std/gateway-error.ts'
import type { HoldReason } from '../domain/event.ts'
import type { Disk } from '../storage/storage.ts'
import { openEpoch, type Epoch } from './session.ts'
import { closedFault, explainOpening } from './spool-errors.ts'
import { settledBytes, viewOf } from './chunk-log/lane.ts'
import { areLettersFull, detailOf, limitOf, reasonToHold, resumeShare } from './intake-limits.ts'
import { createReads } from './kept/kept.ts'
import { createWalks } from './salvage/live-walk.ts'
import type { Spool, SpoolDeps, SpoolListener, SpoolOptions } from './spool.ts'
import { newCounters, usedBytes } from './session-state.ts'
import { totalsNow } from './spool-totals.ts'

export async function openSpool(deps: SpoolDeps, options: SpoolOptions): Promise<Spool> {
  const { clock, emit, disk } = deps
  const listeners = new Set<SpoolListener>()
  const counters = newCounters()
  const closing = new AbortController()
  const storePath = join(options.path, 'store')
  const limitBytes = limitOf(options)

  let epoch: Epoch | null = null
  let epochEnd = new AbortController()
  let hold: HoldReason | null = null
  let heldSinceMs = 0
  let lettersFull = false
  let diskLow = false
  let diskBytes = 0
  let congested = false
  let payloadsSeen = 0
  let keptSeen = 0
  /** Something came that has a bound of its own: it is looked at when its message ends. */
  let judgeSoon = false
  let reopening: Promise<void> = Promise.resolve()

  await makeDirectory(disk, options.path)
  await checkDisk()
  epoch = await open()
  judge()
  const timers = [
    every(options.diskCheckMs, checkDiskAndJudge),
    every(options.forgetMs, async () => epoch?.forget()),
  ]

  // ------------------------------------------------------------------ opening, losing, opening again

  async function open(): Promise<Epoch> {
    const startedAtMs = clock.monotonic()
    const store = await deps.openStore(storePath)
    try {
      const opened = await openEpoch({ ...deps, store, counters, changed, lost }, options)
      await loadBallast()
      reportRecovery(opened, clock.monotonic() - startedAtMs)
      epochEnd = new AbortController()
      void verifyInBackground(opened, epochEnd.signal)
      return opened
    } catch (error) {
      await store.close()
      throw error
    }
  }

  /** Failures end the epoch by themselves (session.ts), so there is nothing left to do for them here. */
  async function verifyInBackground(opened: Epoch, signal: AbortSignal): Promise<void> {
    try {
      await opened.verify(AbortSignal.any([signal, closing.signal]))
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
    }
  }

  function reportRecovery(opened: Epoch, tookMs: number): void {
    const lanes = [...opened.state.lanes.values()]
    emit({
      kind: 'spool_recovered',
      lanes: lanes.length,
      batches: lanes.reduce((sum, lane) => sum + lane.claims.size, 0),
      payloads: lanes.reduce((sum, lane) => sum + lane.openPayloads, 0),
      bytes: lanes.reduce((sum, lane) => sum + lane.nextBytes - settledBytes(lane.settled), 0),
      windowIds: opened.state.window.size(),
      tookMs,
    })
  }

  function lost(fault: GatewayError, unawaited: number): void {
    const old = epoch
    if (old === null || closing.signal.aborted) return
    epoch = null
    epochEnd.abort()
    emit({ kind: 'store_lost', fault })
    const detail = 'The store of the spool is being reopened.'
    if (unawaited > 0) emit({ kind: 'messages_dropped', reason: 'store_lost', detail, count: unawaited })
    judge()
    for (const listener of listeners) listener.storeLost?.()
    reopening = reopen(old, fault)
  }

  async function reopen(old: Epoch, fault: GatewayError): Promise<void> {
    const lostAtMs = clock.monotonic()
    // The handle goes on to lie after a failed write: it is closed, whatever its close says.
    await old.state.store.close().catch(() => undefined)
    if (codeOf(fault.cause) === 'ENOSPC' || /no space/i.test(fault.why)) await disk.dropBallast(options.path)
    let delayMs = options.reopen.firstMs
    for (let attempt = 1; attempt <= options.reopen.attemptsMax; attempt += 1) {
      if (!(await pause(clock, delayMs, closing.signal))) return
      delayMs = Math.min(delayMs * 2, options.reopen.mostMs)
      try {
        epoch = await open()
      } catch (error) {
        emit({ kind: 'store_reopen_failed', fault: explainOpening(options.path, error), attempt })
        continue
      }
      emit({ kind: 'store_reopened', lostMs: clock.monotonic() - lostAtMs })
      for (const listener of listeners) listener.storeReopened?.()
      judge()
      return
    }
    for (const listener of listeners) listener.storeUnrecoverable?.(fault)
  }

  // ------------------------------------------------------------------ may messages come in?

  function judge(): void {
    judgeLetters()
    const reason = reasonToHold(epoch?.state ?? null, { hold, diskLow, diskBytes }, options)
    if (reason === hold) return
    const before = hold
    hold = reason
    if (before === null) heldSinceMs = clock.monotonic()
    if (reason === null) emit({ kind: 'spool_resumed', heldMs: clock.monotonic() - heldSinceMs })
    else emit({ kind: 'spool_held', reason, detail: detailOf(reason, options) })
    for (const listener of listeners) listener.intakeChanged?.()
  }

  function judgeLetters(): void {
    const full = epoch === null ? lettersFull : areLettersFull(epoch.state, lettersFull, options)
    if (full === lettersFull) return
    lettersFull = full
    if (full) emit({ kind: 'dead_letters_full', bytesMax: options.deadLetterBytesMax })
    else emit({ kind: 'dead_letters_resumed' })
    for (const listener of listeners) listener.intakeChanged?.()
  }

  async function checkDisk(): Promise<void> {
    const freeBytes = await disk.freeBytes(options.path)
    // A little more than the mark must be free to go on, so that intake does not flap around it.
    diskLow = freeBytes < options.freeBytesMin * (diskLow ? 2 - resumeShare : 1)
    // Beside it lie the ballast and records that have a limit of their own.
    diskBytes = await disk.usedBytes(storePath)
  }

  async function checkDiskAndJudge(): Promise<void> {
    await checkDisk()
    judge()
    // It was thrown overboard, or there was no room for it at the opening.
    if (epoch !== null) await loadBallast()
  }

  /** A comfort: it never makes the disk low, and where it cannot be written the spool does without. */
  async function loadBallast(): Promise<void> {
    if ((await disk.freeBytes(options.path)) < options.freeBytesMin + options.ballastBytes) return
    await disk.loadBallast(options.path, options.ballastBytes).catch(() => disk.dropBallast(options.path))
  }

  /** Runs `work` again and again, each time `intervalMs` after it ended; ended by `closing`. */
  function every(intervalMs: number, work: () => Promise<void>): { cancel: () => void } {
    const timer = { cancel: clock.after(intervalMs, run) }
    function run(): void {
      // A failed look at the disk is no reason to stop: the next one follows. A lost store reports itself.
      void work()
        .catch(() => undefined)
        .finally(() => {
          if (!closing.signal.aborted) timer.cancel = clock.after(intervalMs, run)
        })
    }
    return timer
  }

  function changed(): void {
    const nowCongested = epoch?.committer.congested ?? false
    if (nowCongested !== congested) {
      congested = nowCongested
      for (const listener of listeners) listener.intakeChanged?.()
    }
    judge()
    const { payloads, kept } = counters
    const grown = payloads !== payloadsSeen
    const shelved = kept !== keptSeen
    payloadsSeen = payloads
    keptSeen = kept
    if (grown) for (const listener of listeners) listener.payloadsAdded?.()
    if (shelved) for (const listener of listeners) listener.messagesKept?.()
  }

  // ------------------------------------------------------------------ what others call

  function current(): Epoch {
    if (epoch === null) throw closedFault()
    return epoch
  }

  async function close(): Promise<void> {
    closing.abort()
    epochEnd.abort()
    for (const timer of timers) timer.cancel()
    await reopening
    const last = epoch
    epoch = null
    await last?.close()
  }

  return {
    get holdReason() {
      return hold
    },
    get congested() {
      return congested
    },
    get deadLettersFull() {
      return lettersFull
    },
    append(payload, dup) {
      const stored = current().append(payload, dup)
      if (stored === 'duplicate') counters.duplicates += 1
      return stored
    },
    addDeadLetter(letter, windowKey, dup) {
      const stored = current().bury(letter, windowKey, dup)
      if (stored === 'duplicate') counters.duplicates += 1
      return stored
    },
    endMessage(ack) {
      const { committer, state } = current()
      committer.endMessage(ack)
      // Judged here and not after the write only: what waits to be written counts as well (invariant 8).
      if (hold === null && (judgeSoon || usedBytes(state) >= limitBytes)) judge()
      judgeSoon = false
    },
    addWindowKey(windowKey, dup) {
      const stored = current().note(windowKey, dup)
      if (stored === 'duplicate') counters.duplicates += 1
      return stored
    },
    putState(key, value) {
      current().remember(key, value)
      judgeSoon = true
    },
    keepMessage(message, windowKey, dup) {
      const stored = current().keep(message, windowKey, dup)
      if (stored === 'duplicate') counters.duplicates += 1
      judgeSoon = true
      return stored
    },
    lanes: () => (epoch === null ? [] : [...epoch.state.lanes.values()].map(viewOf)),
    batches: () =>
      epoch === null
        ? []
        : [...epoch.state.lanes.values()].flatMap((lane) =>
            [...lane.claims.values()].map(({ batch }) => batch).sort((a, b) => a.firstSeq - b.firstSeq),
          ),
    seal: async (lane, limits) => current().seal(lane, limits),
    load: async (batch) => current().load(batch),
    rotate: async (provider) => current().rotate(provider),
    reseal: async (batch, counts) => current().reseal(batch, counts),
    setOperation: async (batch, operation) => current().setOperation(batch, operation),
    settle: async (batch, settlement, receipt = null) => current().settle(batch, settlement, receipt),
    receipts: async (limits) => current().receipts(limits),
    forgetReceipts: async (n) => current().forgetReceipts(n),
    listen(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    exchange: async (exchange) => current().exchange(exchange),
    ...createReads(() => epoch),
    ...createWalks(() => epoch),
    totals: () => totalsNow(epoch, counters, { bytesMax: options.bytesMax, diskBytes }),
    close,
  }
}

async function makeDirectory(disk: Disk, path: string): Promise<void> {
  try {
    await disk.makeDirectory(path)
  } catch (error) {
    throw new GatewayError('SPOOL_UNWRITABLE', {
      what: `Cannot make the spool directory ${path}.`,
      why: `${messageOf(error)}.`,
      act: 'Check the path, and that the user of the gateway may write there.',
      cause: error,
    })
  }
}
