// clock-verdicts.ts: makes verdicts about device clocks again that were made while our own clock was wrong,
// without a person: messages of healthy devices seemed to come from the future, or from long ago.
//
//   our time becomes known, or the clock is set -> correct() -> each quarantine shelf, in order of arrival:
//   messages with FUTURE that were judged by a clock that was behind, and with PAST by one that was ahead
//   -> mapped with the corrected arrival
//
// Promises
//   Nothing is lost and nothing is sent twice: messages leave their shelf in the write that adds their
//   results. What is still wrong is kept again with the corrected arrival, so that it is not judged
//   again, and waits for a person.
//   The messages of a device go in the order of their arrival. What the device has sent since is ahead of
//   them, as it was while they were kept (decision 12).
//   Only messages of this boot can be corrected; for others the time of their arrival is not known.
//
// What can go wrong, and what then happens
//   the process dies, the store is lost    the work begins again; what was not taken is still there
//   the spool is full                      the work waits
//   an expression cannot be evaluated now  the rest of the shelf waits, and it is tried again
//   a person takes a message first         the same
//
// Bounds: one walk over the shelves at a time and at most one a minute, 100 messages a slice, one write a
// slice.

import { pause } from '../../std/clock.ts'
import { clockErrorOf } from '../../domain/arrival.ts'
import type { ShelfName } from '../../domain/kept-store.ts'
import type { Mapping } from '../../mapping/mapping.ts'
import { createUnmappableCounter } from '../intake/unmappable-counter.ts'
import { future, past } from '../remap/kept-message.ts'
import { inSlices } from '../remap/kept-slices.ts'
import { mapperFactory, retryUntilDone, waitForRoom } from '../remap/release-throttle.ts'
import { remapSlice } from '../remap/remap.ts'
import { exchangeSlice, type KeptWorkDeps, type SliceResult } from '../remap/slice-result.ts'
import { quarantinedOn, quarantineShelves, type QuarantinedEntry } from './quarantine-shelves.ts'

export type ClockVerdicts = {
  /** Our time became known, or what we know of it has changed. */
  correct(): void
  /** Resolves when nothing is left to do for now. */
  idle(): Promise<void>
  counters(): ClockVerdictCounters
  stop(): Promise<void>
}

/** Messages since the start. */
export type ClockVerdictCounters = {
  /** Left the quarantine, and the payloads that they became. */
  released: number
  payloads: number
  /** Of them: became dead letters, or were kept again. */
  dead: number
  keptAgain: number
}

type Deps = KeptWorkDeps & {
  mapping: () => Mapping
}

const walkEveryMs = 60_000
const eventEveryMs = 1000

export function createClockVerdicts({ spool, mapped, clock, ourTime, emit, mapping }: Deps): ClockVerdicts {
  const stopping = new AbortController()
  const { signal } = stopping
  const deadBy = createUnmappableCounter({ clock, emit }, { eventEveryMs })
  const counts = { released: 0, payloads: 0, dead: 0, keptAgain: 0 }
  let wanted = false
  let working: Promise<void> | null = null
  return { correct, idle: async () => void (await working), counters: () => ({ ...counts }), stop }

  function correct(): void {
    if (signal.aborted) return
    wanted = true
    working ??= work()
  }

  /** Ends when nothing is left to do; correct() begins it again. */
  async function work(): Promise<void> {
    while (wanted && !signal.aborted) {
      wanted = false
      const before = { ...counts }
      let isDone = false
      await retryUntilDone(
        async () => {
          isDone = await correctAll()
        },
        clock,
        signal,
      )
      report(before)
      if (isDone && !wanted) break
      wanted = true
      await pause(clock, walkEveryMs, signal)
    }
    working = null
  }

  async function correctAll(): Promise<boolean> {
    let isDone = true
    for (const shelf of quarantineShelves(spool)) {
      // Nothing is corrected while our time is unknown, so that the mapper is not made for nothing.
      if (ourTime.offsetMs() === null) return true
      const open = await mapperFactory(mapping(), spool)
      await inSlices({
        entries: misjudgedOn(shelf),
        map: (entries, options) => remapSlice(open, entries, options),
        settle,
        signal,
      })
    }
    return isDone
  }

  async function* misjudgedOn(shelf: ShelfName): AsyncGenerator<QuarantinedEntry> {
    for await (const entry of quarantinedOn({ spool, ourTime }, shelf, null, signal)) {
      const { reason, envelope } = entry.message
      const errorMs = clockErrorOf(envelope, ourTime)
      if (reason === future ? errorMs > 0 : reason === past && errorMs < 0) yield entry
    }
  }

  async function settle(slice: SliceResult): Promise<void> {
    if (!(await waitForRoom(spool, clock, signal))) return
    const { keptMessages, refused } = slice
    const { taken, payloads } = await exchangeSlice({ spool, mapped }, slice, ourTime.now())
    counts.released += taken - keptMessages.length
    counts.payloads += payloads
    counts.dead += refused.length
    counts.keptAgain += keptMessages.length
    for (const one of refused) deadBy.add(one, one.envelope.topic, one.envelope)
  }

  function report(before: ClockVerdictCounters): void {
    const messages = counts.released - before.released
    const keptAgain = counts.keptAgain - before.keptAgain
    if (messages + keptAgain === 0) return
    const [payloads, dead] = [counts.payloads - before.payloads, counts.dead - before.dead]
    emit({ kind: 'clock_verdicts_corrected', messages, payloads, dead, keptAgain })
  }

  async function stop(): Promise<void> {
    stopping.abort()
    await working
  }
}
