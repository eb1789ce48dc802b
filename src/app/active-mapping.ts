// active-mapping.ts: the mapping in force, everything that maps with it, and its replacement.
//
//   intake      maps messages that arrive, with state that is kept     ingest/intake
//   release     maps quarantined messages of devices now admitted      ingest/quarantine/quarantine.ts
//   decisions   map what a person releases from quarantine             ingest/quarantine
//   verdicts    make verdicts about device clocks again        ingest/quarantine/clock-verdicts.ts
//   deferred    maps messages that an earlier version deferred         ingest/remap
//   remap       maps dead letters again on request                     ingest/remap/dead-letter-remap.ts
//
// A swap changes all of them between two messages. The next mapping is built beforehand; if that fails, or
// the store is lost during the swap, the previous mapping stays in force.

import { isDeepStrictEqual } from 'node:util'
import type { Clock, EpochMs } from '../std/clock.ts'
import { createBoundedReader, type ReadBounded } from '../std/file-system/regular-file.ts'
import type { Emit } from '../domain/event.ts'
import { embeddedBrokerName } from '../domain/message.ts'
import type { Config } from '../config/config.ts'
import { providerNames } from '../delivery/config.ts'
import {
  createClockVerdicts,
  createDeferredMessages,
  createQuarantineDecisions,
  createQuarantineRelease,
  remapDeadLetters,
  type Ingest,
  type QuarantineDecisions,
  type QuarantineRelease,
  type RemapReport,
  type RemapRequest,
} from '../ingest/ingest.ts'
import {
  openMapping,
  withheldByField,
  type LostFields,
  type CounterReset,
  type Mapper,
  type Mapping,
  topicsRead,
} from '../mapping/mapping.ts'
import type { DeviceRecords } from '../device-records/device-records.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Forgotten, MappingStage } from '../ops/ops.ts'
import type { Spool } from '../spool/spool.ts'
import { createDeviceMessages, createDeviceMonitor } from './device-monitor/device-monitor.ts'
import { closedSources } from './traffic-watch/reachability.ts'
import type { SilentDevices } from './traffic-watch/silent-devices.ts'
import type { GatewayTime } from './our-time.ts'

export type ActiveMapping = {
  readonly mapper: Mapper
  readonly release: QuarantineRelease
  readonly opsView: MappingStage
  /** What a later start of the stages begins with. */
  inForce(): { mapping: Mapping; config: Config }
  /** Before the first message. */
  prepare(): Promise<void>
  /** From the first message on. */
  start(ingest: Pick<Ingest, 'swap' | 'clients' | 'messageSources'>, silentDevices: SilentDevices): void
  /**
   * Rejects with DEVICES_INVALID. What it returns puts it in force, or rejects where the store is lost; then
   * the previous mapping stays.
   */
  next(config: Config): Promise<() => Promise<void>>
  remap(request: RemapRequest, signal: AbortSignal): Promise<RemapReport>
  /** Resolves when the mapping has durably forgotten it. */
  forget(device: string, signal: string | null): Promise<Forgotten | null>
  readonly decisions: Pick<QuarantineDecisions, 'release' | 'drop'>
  /** To be kept over a restart. */
  readonly lostFields: LostFields
  stop(): Promise<void>
}

export type MappingDeps = {
  spool: Spool
  clock: Clock
  emit: Emit
  ourTime: GatewayTime
  records: DeviceRecords
  lostFields: LostFields
  /** Null without one. */
  ledger: Pick<Ledger, 'query'> | null
}

type Present = { mapping: Mapping; mapper: Mapper; since: EpochMs; config: Config }

/** Rejects with DEVICES_INVALID; before anything else is opened. */
export function mappingOf(
  config: Config,
  {
    clockOffsetMs,
    emit,
    ...deps
  }: { clockOffsetMs: () => number | null; emit: Emit; lostFields: LostFields; readFile?: ReadBounded },
): Promise<Mapping> {
  const counterReset = (reset: CounterReset) => emit({ kind: 'odometer_reset', ...reset })
  const providers = providerNames(config.delivery)
  return openMapping(config, { ...deps, clockOffsetMs, counterReset, providers })
}

export function createActiveMapping(deps: MappingDeps, config: Config, first: Mapping): ActiveMapping {
  const { spool, clock, emit, ourTime, records, lostFields } = deps
  const stopping = new AbortController()
  const readFile = createBoundedReader()
  let present: Present = presentOf(first, config, null)
  const keptDeps = { spool, clock, ourTime, emit, mapped: records.mappedLater }
  const release = createQuarantineRelease(keptDeps, first)
  const deferred = createDeferredMessages({
    ...keptDeps,
    releaseOrder: release,
    mapping: () => present.mapping,
  })
  const verdicts = createClockVerdicts({ ...keptDeps, mapping: () => present.mapping })
  const monitor = createDeviceMonitor({ clock: { ...clock, now: ourTime.now }, ourTime, records, active })
  const messages = createDeviceMessages({ records, mapping: () => present.mapping, ledger: deps.ledger })
  const decisions = createQuarantineDecisions({ ...keptDeps, mapping: () => present.mapping })
  /** Requests of persons run one after the other: two must not take the same dead letter or kept message. */
  let lastRequest: Promise<unknown> = Promise.resolve()
  let intake: Pick<Ingest, 'swap'> | null = null
  return {
    get mapper() {
      return present.mapper
    },
    release,
    opsView: {
      view,
      device: monitor.device,
      messages: messages.messagesOf,
      messagesByHour: records.messagesByHour,
      devices: monitor.devices,
      deviceTotals: monitor.totals,
      states: monitor.states,
    },
    inForce: () => ({ mapping: present.mapping, config: present.config }),
    prepare: () => release.findReleasable(),
    start(ingest, silentDevices) {
      intake = ingest
      release.start()
      deferred.start()
      const isClosed = (from: string) => closedSources(ingest.messageSources()).has(from)
      monitor.start({ ...ingest.clients, isClosed }, silentDevices)
      ourTime.onCorrection(() => {
        present.mapper.ownTimeCorrected()
        verdicts.correct()
      })
    },
    next,
    remap: (request, signal) =>
      inTurn(signal, (either) =>
        remapDeadLetters({ spool, clock, ourTime, emit, mapping: present.mapping }, request, either),
      ),
    forget,
    lostFields,
    decisions: {
      release: (which, options, signal) =>
        inTurn(signal, (either) => decisions.release(which, options, either)),
      drop: (which, options, signal) => inTurn(signal, (either) => decisions.drop(which, options, either)),
    },
    stop,
  }

  function active() {
    const { mapping, mapper, config: used } = present
    const ofBroker = used.sources.filter(({ from }) => from?.includes(embeddedBrokerName) !== false)
    return { mapping, mapper, topics: () => ofBroker.flatMap(topicsRead) }
  }

  function presentOf(mapping: Mapping, config: Config, last: Present | null): Present {
    const before = last && { known: last.mapper.known, sameSources: sameSources(last.config, config) }
    return { mapping, mapper: mapping.openLive(records.notes, before), since: clock.now(), config }
  }

  async function forget(device: string, signal: string | null): Promise<Forgotten | null> {
    const forgotten = signal === null ? await records.forget(device) : 0
    if (forgotten === null) return null
    const { values, writes } = present.mapper.forget(device, signal)
    await spool.exchange({ take: [], payloads: [], deadLetters: [], stateChanges: writes })
    return { values, records: forgotten }
  }

  async function next(config: Config): Promise<() => Promise<void>> {
    const mapping = await mappingOf(config, { clockOffsetMs: ourTime.offsetMs, emit, lostFields, readFile })
    return () => swap(mapping, config)
  }

  async function swap(mapping: Mapping, config: Config): Promise<void> {
    const next = presentOf(mapping, config, present)
    const { mapping: before } = present
    release.beginSwap(next.mapping)
    let succeeded = false
    try {
      await intake?.swap(next.mapper, () => before.open())
      succeeded = true
    } finally {
      if (succeeded) {
        records.mappingEnds()
        present = next
        ourTime.setTrustLocal(config.clocks.trust_local)
      }
      release.endSwap(succeeded)
    }
    monitor.mappingChanged()
  }

  function inTurn<Report>(
    signal: AbortSignal,
    run: (either: AbortSignal) => Promise<Report>,
  ): Promise<Report> {
    const either = AbortSignal.any([signal, stopping.signal])
    const report = lastRequest.then(() => run(either))
    // The caller gets the fault; the next request only waits for the end.
    lastRequest = report.catch(() => undefined)
    return report
  }

  function view(): ReturnType<MappingStage['view']> {
    const {
      mapper,
      since,
      config: { sources },
    } = present
    const { omitted, flagged, clocks, watched } = mapper.counters()
    return {
      since,
      sources: sources.length,
      openParts: mapper.openParts(),
      omitted: withheldByField(omitted),
      flagged: withheldByField(flagged),
      clocks,
      watched: { ...watched, beyond: watched.beyond + lostFields.beyond() },
      skewed: monitor.worstClocks(),
      release: release.counters(),
      decisions: decisions.counters(),
      corrected: verdicts.counters(),
      deferred: deferred.counters(),
    }
  }

  async function stop(): Promise<void> {
    stopping.abort()
    monitor.stop()
    await Promise.all([release.stop(), deferred.stop(), verdicts.stop(), lastRequest])
  }
}

/** What was found of the devices of these sources holds with the next mapping, too. */
function sameSources(one: Config, other: Config): ReadonlySet<string> {
  if (!isDeepStrictEqual(one.plausibility, other.plausibility)) return new Set()
  const isSame = (source: Config['sources'][number]) =>
    other.sources.some((next) => isDeepStrictEqual(source, next))
  return new Set(one.sources.filter(isSame).map(({ name }) => name))
}
