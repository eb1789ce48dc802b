// store-supervisor.ts: keeps a session open over the failures of its store.
//
//   open -> (a write fails) -> lost -> close, pause, open again -> open
//                                  '-> gives up after `attemptsMax` attempts in a row
//
// Another store than the one that this process has had is never opened (opening/known-store.ts). It is looked
// for before each opening, and every second while the store is open.
// It also looks at the disk (storage/disk-watch.ts).

import { every, pause, type CancelTimer } from '../std/clock.ts'
import { codeOf, GatewayError } from '../std/gateway-error.ts'
import type { State, StateSource } from '../domain/condition-state.ts'
import { createDiskWatch, explainDirectory, isDiskFull } from '../storage/storage.ts'
import { isCorruption } from './chunk-log/damage-scan.ts'
import type { HeldKeys } from './chunk-log/dedup-window.ts'
import { settledBytes } from './chunk-log/lane.ts'
import { openHighWaterMark } from './high-water-mark/high-water-mark.ts'
import type { IntakeLimits } from './intake-limits.ts'
import { storePathOf } from './opening/aside.ts'
import { elsewhereFault, isElsewhere, placeOf, refuseOtherStore } from './opening/known-store.ts'
import { takeBackInUse } from './opening/in-use-marker.ts'
import { openingOf, type PreviousEnd } from './opening/opening.ts'
import { openSafely } from './opening/safe-open.ts'
import { mayMakeStore, newUntilMs, noteStore, requireSpool } from './opening/spool-marker.ts'
import type { FoundStore, SpoolMarker } from './opening/spool-marker.ts'
import { verifyTables } from './opening/table-verification.ts'
import { audit } from './recovery/conservation-audit.ts'
import { unknownLanes } from './recovery/lane-recovery.ts'
import { closeSession, openSession, upkeep } from './session.ts'
import type { OpenSession, Session } from './session-state.ts'
import { closedFault } from './spool-errors.ts'
import type { SpoolDeps, SpoolOptions } from './spool-options.ts'
import type { SpoolListener } from './types.ts'
import type { SpoolCounters } from './views.ts'
import type { WriteWatch } from './write-watch.ts'

type SupervisorDeps = SpoolDeps & {
  counters: SpoolCounters
  limits: IntakeLimits
  heldKeys: HeldKeys
  writes: WriteWatch
  /** A durable write of the open session, or a change of its congestion. */
  changed: (session: Session) => void
  acked: (waitMs: number) => void
  notify: (call: (listener: SpoolListener) => void) => void
}

export type StoreSupervisor = OpenSession &
  StateSource & { readonly previousEnd: PreviousEnd; close(): Promise<void> }

/** Resolves when the store is open. */
export async function superviseStore(deps: SupervisorDeps, options: SpoolOptions): Promise<StoreSupervisor> {
  const {
    clock,
    emit,
    disk,
    limits,
    notify,
    memory = { known: null, markFailedAtMs: null, markFailure: null },
  } = deps
  const closing = new AbortController()
  const storePath = storePathOf(options.path)
  const opening = openingOf({ ...deps, memory }, options)
  const watch = createDiskWatch(deps, { ...options, storePath })
  let session: Session | null = null
  /** Of the spool that this process opened first; null until then, and for a store in memory. */
  let marker: SpoolMarker | null = null
  let newUntil: number | null = null
  /** Since the store was lost; `attempt`: the last one to open it again, 0 before the first. */
  let loss: { fault: GatewayError; attempt: number } | null = null
  /** Of the open store. */
  let place: string | null = null
  let sessionEnd = new AbortController()
  let reopening: Promise<void> = Promise.resolve()
  let verifying: Promise<void> = Promise.resolve()

  session = await start()
  limits.update(session)
  // Where this fails, it follows with the upkeep.
  await opening?.lookForAside().catch(() => undefined)
  const ends = [
    repeat(options.diskCheckMs, checkDisk),
    repeat(options.forgetMs, async () => {
      await opening?.lookForAside()
      if (session !== null) await run(upkeep)
    }),
  ]

  async function start(): Promise<Session> {
    try {
      if (opening === null) await disk.makeDirectory(options.path)
      else if (memory.known === null) marker = await requireSpool(options, clock.now())
      else await refuseOther()
      await watch.measure()
      const opened = await open()
      if (marker !== null) newUntil = newUntilMs(clock, marker)
      return opened
    } catch (error) {
      // Where this fails, the next start checks more than it must.
      if (opening?.checkState().checkAll === false)
        await takeBackInUse(options.path, memory).catch(() => undefined)
      // Without a code it is a programming error.
      throw codeOf(error) === undefined ? error : cannotOpen(error)
    }
  }

  function cannotOpen(error: unknown): GatewayError {
    return explainDirectory(`Cannot open the spool at ${options.path}.`, error)
  }

  async function refuseOther(): Promise<void> {
    if (opening !== null && memory.known !== null) await refuseOtherStore(options.path, memory.known)
  }

  async function open(): Promise<Session> {
    await refuseOther()
    const signals = deps.signal === undefined ? [closing.signal] : [closing.signal, deps.signal]
    return openSafely({ disk, opening, signal: AbortSignal.any(signals) }, options.path, openOnce)
  }

  async function openOnce(found: FoundStore): Promise<Session> {
    const startedAtMs = clock.monotonic()
    const known = memory.known
    const damagedBefore = deps.counters.damaged
    const manifestBefore = disk.manifestName(storePath)
    // The mount, or the store, may have gone since the files and the marker were looked at.
    const createIfMissing = known === null && (await mayMakeStore(options.path, { found, marker }))
    const store = deps.writes.timed(await deps.openStore(storePath, { createIfMissing }))
    const manifest = () => disk.manifestName(storePath) ?? ''
    const mark = openHighWaterMark({ clock, disk, manifest, memory }, options.path)
    try {
      place = opening === null ? null : await placeOf(options.path)
      if (marker !== null) await noteStore(options.path, marker)
      const sessionDeps = { ...deps, store, mark, manifestBefore, changed, lost }
      const opened = await openSession(sessionDeps, options)
      memory.known = mark.durable()
      await watch.loadBallast()
      const damaged = deps.counters.damaged - damagedBefore
      const unconfirmedWrites = known === null ? 0 : mark.durable().writes - known.writes
      reportRecovery(opened, { damaged, unconfirmedWrites, tookMs: clock.monotonic() - startedAtMs })
      sessionEnd = new AbortController()
      void auditInBackground(opened, sessionEnd.signal)
      verifying = verifyInBackground(sessionEnd.signal)
      return opened
    } catch (error) {
      mark.close()
      await store.close()
      throw error
    }
  }

  function verifyInBackground(signal: AbortSignal): Promise<void> {
    const { readTables, random } = deps
    if (opening === null || readTables === undefined) return Promise.resolve()
    const either = AbortSignal.any([signal, closing.signal])
    return verifyTables({ clock, emit, readTables, opening, random }, options, either)
  }

  /** A failed read ends the session elsewhere; nothing is left to do here. */
  async function auditInBackground(opened: Session, signal: AbortSignal): Promise<void> {
    try {
      await audit(opened, AbortSignal.any([signal, closing.signal]))
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
    }
  }

  function reportRecovery(
    { lanes: byId, window }: Session,
    found: { damaged: number; unconfirmedWrites: number; tookMs: number },
  ): void {
    const lanes = [...byId.values()]
    emit({
      kind: 'spool_recovered',
      lanes: lanes.length,
      batches: lanes.reduce((sum, lane) => sum + lane.claims.size, 0),
      payloads: lanes.reduce((sum, lane) => sum + lane.openPayloads, 0),
      bytes: lanes.reduce((sum, lane) => sum + lane.nextBytes - settledBytes(lane.settled), 0),
      windowIds: window.size(),
      ...found,
    })
  }

  function changed(): void {
    if (session !== null) deps.changed(session)
  }

  function lost(fault: GatewayError, unawaited: number): void {
    const old = session
    if (old === null || closing.signal.aborted) return
    session = null
    memory.known = old.mark.durable()
    sessionEnd.abort()
    old.eviction.end()
    loss = { fault, attempt: 0 }
    emit({ kind: 'store_lost', fault })
    const detail = 'The store of the spool is being reopened.'
    if (unawaited > 0) emit({ kind: 'messages_dropped', reason: 'store_lost', detail, count: unawaited })
    limits.update(null)
    notify((listener) => listener.storeLost?.())
    reopening = reopen(old, fault)
  }

  async function reopen(old: Session, fault: GatewayError): Promise<void> {
    const lostAtMs = clock.monotonic()
    old.mark.close()
    // The handle is unusable after a failed write, so it is closed, whatever close() reports.
    await old.store.close().catch(() => undefined)
    // Where that fails, the opening says why.
    if (isDiskFull(fault.cause)) await disk.dropBallast(options.path).catch(() => undefined)
    else if (isCorruption(fault.cause)) await opening?.suspect()
    let last = fault
    let delayMs = options.reopen.firstMs
    for (let attempt = 1; attempt <= options.reopen.attemptsMax; attempt += 1) {
      if (!(await pause(clock, delayMs, closing.signal))) return
      delayMs = Math.min(delayMs * 2, options.reopen.mostMs)
      try {
        session = await open()
      } catch (error) {
        if (closing.signal.aborted) return
        last = cannotOpen(error)
        loss = { fault: last, attempt }
        emit({ kind: 'store_reopen_failed', fault: last, attempt })
        // Another attempt does not mend it: the gateway refuses the spool and waits.
        if (opening !== null && (last.code === 'SPOOL_DAMAGED' || isElsewhere(last))) break
        if (!isDiskFull(error)) await opening?.suspect()
        continue
      }
      loss = null
      emit({ kind: 'store_reopened', lostMs: clock.monotonic() - lostAtMs })
      notify((listener) => listener.storeReopened?.())
      limits.update(session)
      // The committer before may have been busy or congested.
      changed()
      return
    }
    notify((listener) => listener.storeUnrecoverable?.(last))
  }

  /** Writes into a store that is not at its path would be missing when another one is opened there. */
  async function checkPlace(): Promise<void> {
    const running = session
    if (opening === null || running === null) return
    const known = running.mark.durable()
    const fault = await elsewhereFault(options.path, { place, known })
    if (fault === null) return
    memory.known = known
    running.committer.fail(fault)
  }

  async function checkDisk(): Promise<void> {
    const writes = session?.mark.durable().writes ?? null
    if (!watch.isDue(writes)) return
    await checkPlace()
    await watch.look(session === null ? null : writes)
    // Closed meanwhile: that there is no session is no loss of the store.
    if (closing.signal.aborted) return
    limits.update(session)
    if (session !== null && limits.waitsForDisk(session)) session.compactor.freeDisk()
  }

  /** A failed measurement is no reason to stop: the next one follows. A lost store reports itself. */
  function repeat(intervalMs: number, work: () => Promise<void>): CancelTimer {
    return every(clock, intervalMs, () => work().catch(() => undefined))
  }

  function current(): Session {
    if (session === null) throw closedFault()
    return session
  }

  async function run<Result>(work: (session: Session) => Promise<Result>): Promise<Result> {
    const running = current()
    try {
      return await work(running)
    } catch (error) {
      throw running.failRead(error)
    }
  }

  async function close(): Promise<void> {
    closing.abort()
    sessionEnd.abort()
    for (const end of ends) end()
    await reopening
    const last = session
    session = null
    if (last === null) return
    await closeSession(last)
    memory.known = last.mark.durable()
    await verifying
    await opening?.closed()
  }

  function* states(): Generator<State> {
    if (loss !== null) yield { code: 'STORE_LOST', ...loss }
    if (opening !== null) yield* opening.states()
    if (memory.markFailure !== null) yield { code: 'MARK_UNWRITABLE', why: memory.markFailure }
    if (marker !== null && newUntil !== null && clock.monotonic() < newUntil)
      yield { code: 'SPOOL_NEW', path: options.path, at: marker.madeAt }
    if (session !== null) yield* unknownLanes(session)
  }

  return { current, peek: () => session, run, close, states, previousEnd: opening?.previousEnd() ?? 'clean' }
}
