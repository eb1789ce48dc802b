// active-mapping.ts: the mapping that is in force, all that maps with it, and how another one takes its place.
//
//   intake    maps what arrives, with a memory that is kept          mapper
//   release   maps what was quarantined and is admitted now          ingest/quarantine/quarantine.ts
//   deferral  maps what waits for its expression                     ingest/expressions/deferred-messages.ts
//   remap     maps dead letters again where somebody asks for it     ingest/quarantine/dead-letter-remap.ts
//   verdicts  maps what a person releases from quarantine            ingest/quarantine/quarantine-decisions.ts
//
// A swap changes all of them between two messages. The next one is made ready aside; where that fails, or the store is
// lost in the middle, everything goes on as it was.

import type { Clock, EpochMs } from '../std/clock.ts'
import type { Emit } from '../domain/event.ts'
import type { Config } from '../config/config.ts'
import { providerNames } from '../delivery/config.ts'
import {
  createDeferredMessages,
  createExpressions,
  createQuarantineRelease,
  createQuarantineDecisions,
  remapDeadLetters,
  type Ingest,
  type QuarantineRelease,
  type RemapReport,
  type RemapRequest,
  type QuarantineDecisions,
} from '../ingest/ingest.ts'
import { openMapping, type Mapper, type Mapping } from '../mapping/mapping.ts'
import type { MappingStage } from '../ops/ops.ts'
import type { Spool } from '../spool/spool.ts'
import { createDeviceMonitor } from './device-monitor.ts'

export type ActiveMapping = {
  readonly mapper: Mapper
  readonly release: QuarantineRelease
  readonly opsView: MappingStage
  /** Before the first message. */
  prepare(): Promise<void>
  /** From the first message on. */
  start(ingest: Pick<Ingest, 'swap'>): void
  /** Rejects with DEVICES_INVALID, or where the store is lost; then the one before stays in force. */
  swap(config: Config): Promise<void>
  remap(request: RemapRequest, signal: AbortSignal): Promise<RemapReport>
  readonly decisions: Pick<QuarantineDecisions, 'release' | 'drop'>
  stop(): Promise<void>
}

export type MappingDeps = { spool: Spool; clock: Clock; emit: Emit; clockOffsetMs: () => number | null }

type Present = { mapping: Mapping; mapper: Mapper; since: EpochMs; sources: number }

/** Rejects with DEVICES_INVALID; before anything else is opened. */
export function mappingOf(config: Config, clockOffsetMs: () => number | null): Promise<Mapping> {
  return openMapping(config, { clockOffsetMs, providers: providerNames(config.delivery) })
}

export function createActiveMapping(deps: MappingDeps, config: Config, first: Mapping): ActiveMapping {
  const { spool, clock, emit, clockOffsetMs } = deps
  const stopping = new AbortController()
  let present: Present = presentOf(first, config)
  const expressions = createExpressions({ clock, emit }, present.mapper)
  const release = createQuarantineRelease({ spool, clock, emit, expressions }, first)
  const deferral = createDeferredMessages({ spool, clock, emit, expressions, releaseOrder: release }, present)
  const look = createDeviceMonitor({ clock, emit, inForce: () => present })
  const verdicts = createQuarantineDecisions({
    spool,
    clock,
    emit,
    expressions,
    mapping: () => present.mapping,
  })
  /** Letters and kept messages are taken by one person at a time. */
  let lastOrder: Promise<unknown> = Promise.resolve()
  let intake: Pick<Ingest, 'swap'> | null = null
  return {
    get mapper() {
      return present.mapper
    },
    release,
    opsView: { view, device: look.device, devices: look.devices },
    prepare: () => release.findReleasable(),
    start(ingest) {
      intake = ingest
      release.start()
      deferral.start()
      look.start()
    },
    swap,
    remap: (request, signal) =>
      inTurn(signal, (either) =>
        remapDeadLetters({ spool, clock, emit, mapping: present.mapping }, request, either),
      ),
    decisions: {
      release: (which, options, signal) =>
        inTurn(signal, (either) => verdicts.release(which, options, either)),
      drop: (which, options, signal) => inTurn(signal, (either) => verdicts.drop(which, options, either)),
    },
    stop,
  }

  function presentOf(mapping: Mapping, { sources }: Config): Present {
    return { mapping, mapper: mapping.open(), since: clock.now(), sources: sources.length }
  }

  async function swap(next: Config): Promise<void> {
    const coming = presentOf(await mappingOf(next, clockOffsetMs), next)
    release.beginSwap(coming.mapping)
    let succeeded = false
    let thread: Promise<void> | null = null
    try {
      await intake?.swap(coming.mapper)
      succeeded = true
    } finally {
      if (succeeded) {
        present = coming
        // Before the release looks for what can go: nothing is kept by the mapping of before any more.
        deferral.swap(coming.mapping, coming.mapper)
        thread = expressions.swap(coming.mapper)
      }
      release.endSwap(succeeded)
    }
    look.mappingChanged()
    await thread
  }

  function inTurn<Report>(
    signal: AbortSignal,
    order: (either: AbortSignal) => Promise<Report>,
  ): Promise<Report> {
    const either = AbortSignal.any([signal, stopping.signal])
    const before = lastOrder
    const carryOut = async () => {
      await before
      return order(either)
    }
    const report = carryOut()
    // Whoever asked gets the fault; the next one does not wait for more than the end.
    lastOrder = report.catch(() => undefined)
    return report
  }

  function view(): ReturnType<MappingStage['view']> {
    const { mapper, since, sources } = present
    const { omitted, clocks } = mapper.counters()
    return {
      since,
      sources,
      openParts: mapper.openParts(),
      omitted,
      clocks,
      skewed: look.worstClocks(),
      release: release.counters(),
      decisions: verdicts.counters(),
      deferral: deferral.counters(),
    }
  }

  async function stop(): Promise<void> {
    stopping.abort()
    look.stop()
    await expressions.close()
    await Promise.all([release.stop(), deferral.stop(), lastOrder])
  }
}
