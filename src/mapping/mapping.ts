// mapping.ts: the entry file of the mapping: from a message to payloads.
//
// Guarantees
//   Total    map() gives a result for every message, with any bytes and topic; it never throws.
//   Pure     the same message under the same config and device table gives the same payloads with the same
//            ids, today and after a restart. What coalesce, merge and decoders with memory remember is a list
//            of writes that are committed with the message (state/state.ts). Other memory changes no name.
//   Exact    a value is converted exactly or not at all; a place or time is never guessed, clamped or
//            repaired. What must be right (position, time, device) refuses the message when it is wrong; what
//            may be missing (speed, heading, motion, a signal) is left out and counted.
//   Closed   a message becomes payloads, or it is ignored with a reason of the config, unmappable with a
//            reason and a sentence, quarantined (kept whole until its device is listed or its clock is
//            judged), or a part of what is
//            collected. A result that keeps the message has the key under which a resend of it is known.
//
// How. The config is compiled into a plan for each source once (compile/). For each message the mapper
// (mapper.ts) then does:
//
//   topic -> source, captures   one tree of all patterns (path/topic-pattern.ts), remembered for each topic;
//                               `when` decides between several sources (routing/)
//   bytes -> value              the table of encodings (encodings/); packed values are unpacked (extract/)
//   each                        one record, or a list: a payload each, all or none (path/record-selection.ts)
//   device -> what is known     devices/: the device table, defaults, clocks
//   coalesce                    values of one device become one record first (state/)
//   when                        ignored where it does not hold (expression/)
//   time, position, signals     fields/ over path/: paths, values, units, exact decimals, plausibility/
//   name -> ids -> JSON text    one hash and one text (identity.ts, write.ts), of a reading (read/)
//   thin, merge                 fewer payloads, or one of several messages (state/)
//
// A message costs no regular expression, no promise and no log line. A refused message may cost more: its
// sentence is made for a person.
//
// What can go wrong, and what then happens
//   the config is wrong      compileSources reports every problem with its place, and rejects the config
//   the table is wrong       loadDevices rejects with every bad row
//   a flood of new topics    the cache forgets what is unused; a forgotten topic is matched again

import { createBoundedReader, type ReadBounded } from '../std/file-system/regular-file.ts'
import { GatewayError } from '../std/gateway-error.ts'
import { defaultProvider, type ProviderName } from '../domain/ids.ts'
import { embeddedBrokerName } from '../domain/message.ts'
import { compileSources } from './compile/compile.ts'
import type { MappingConfig } from './config.ts'
import {
  DeviceTableError,
  loadDevices,
  noDevices,
  type DeviceRow,
  type LoadedDevices,
} from './devices/device-table.ts'
import { createExplainer, type Explainer } from './explain/explain.ts'
import type { ClockPolicy } from './devices/device-clocks.ts'
import type { DeviceNotes } from './types.ts'
import { createMapper, type Mapper, type MapperDeps, type MapperOptions } from './mapper.ts'

export { unmappableReasons, type QuarantineReason } from './reasons.ts'
export { deviceRules } from './taken-topics.ts'
export { casesSchema, type CasesFile } from './cases/case-schema.ts'
export { runCases, type CaseResult } from './cases/cases.ts'
export type { Explained, ExplainedField, Explainer } from './explain/explain.ts'
export { compileSources }
export { messageSourceWarnings, topicsRead, untakenTopics } from './message-source-warnings.ts'
export { doubtfulWords, type TableModels } from './doubtful-words.ts'
export { collectedNamesOf } from './compile/compile-state.ts'
export { messageKeyOf } from './identity.ts'
export { coordinateOf } from './positions/position-names.ts'
export { fieldNames, plainKey } from './fields/field-names.ts'
export { unitOption } from './plausibility/quantities.ts'
export { withheldByField, type WithheldField } from './plausibility/withheld-counts.ts'
export { type DeviceClock } from './devices/device-clocks.ts'
export type {
  DeviceNotes,
  KeptResult,
  MapResult,
  NotedDevice,
  StateChanges,
  StateWrite,
  UnsentPart,
} from './types.ts'
export { createMapper, outcomesOf, outcomesOfChanges, type Mapper, type Outcome } from './mapper.ts'
export { covers, filterText, parseTopic, topicFilterOf, type TopicPattern } from './path/topic-pattern.ts'
export { createLostFields, type LostFields } from './lost-fields/lost-fields.ts'
export { isStoredSource } from './lost-fields/device-fields.ts'
export type { CounterReset } from './memory/counter-memory.ts'
export { messageOfStateEntry } from './state/state-restore.ts'
export { functionRows } from './expression/expression.ts'
export { insteadOfWord } from './source-config/old-words.ts'
export { isDecoderState } from './encodings/encodings.ts'
export { DeviceTableError, loadDevices }
export { editDevices, readDeviceFields, type DeviceFields } from './devices/device-table-text.ts'

export type OpenMapperOptions = Pick<MapperDeps, 'clockOffsetMs' | 'counterReset' | 'lostFields'> & {
  /** Providers that payloads can be delivered for. */
  providers?: readonly ProviderName[]
  /** Reads the device table. */
  readFile?: ReadBounded
  /** The messages were recorded at any time, so none of them is too old. */
  isRecorded?: boolean
}

/** A mapper from the loaded config. Rejects: DEVICES_INVALID, or CONFIG_INVALID for an unchecked config. */
export async function openMapper(config: MappingConfig, options: OpenMapperOptions = {}): Promise<Mapper> {
  const { deps, mapping } = await partsOf(config, options)
  return createMapper(deps, mapping)
}

/** The mapping of a config, for a daemon that also maps kept messages. */
export type Mapping = {
  /** A mapper with its own memory. `decision`: of a person, in place of `clocks.on_future` and `on_past`. */
  open(decision?: ClockPolicy['onFuture']): Mapper
  /** The mapper of messages that arrive; it goes on with what one before it knew. */
  openLive(notes: DeviceNotes, before: NonNullable<MapperDeps['before']> | null): Mapper
  rowOf(device: string): DeviceRow | undefined
  /** Explains a message by this mapping. Slow, for a person; made at the first call. */
  explainer(): Explainer
  /** Whose data the device sends by this source now; null where neither its row nor the source says it. */
  providerOf(device: string, source: string | null): ProviderName | null
  /** The devices of the table. */
  listed(): Iterable<string>
  readonly listedCount: number
  /** Whether messages of the device are mapped, as far as the device table and `devices.unknown` say. */
  admits(device: string): boolean
}

/** Rejects as openMapper does. */
export async function openMapping(config: MappingConfig, options: OpenMapperOptions = {}): Promise<Mapping> {
  const { deps, mapping } = await partsOf(config, options)
  const rowOf = (device: string) => deps.devices.find(device)
  const acceptsAll = config.devices.unknown === 'accept'
  // One that has a capture is known with the topic only.
  const providerOfSource = new Map(
    config.sources.map(({ name, provider }) => [
      name,
      provider?.includes('{') === true ? null : (provider as ProviderName | undefined),
    ]),
  )
  let explainer: Explainer | null = null
  const received = { ...mapping, unnamedFrom: embeddedBrokerName }
  return {
    openLive: (notes, before) => createMapper({ ...deps, notes, before }, received),
    open: (onFuture) => (onFuture === undefined ? createMapper(deps, received) : openFor(onFuture)),
    explainer: () =>
      (explainer ??= createExplainer(deps, { ...mapping, ...compileSources(config, true) }, config)),
    rowOf,
    providerOf: (device, source) => rowOf(device)?.provider ?? providerOfSource.get(source ?? '') ?? null,
    listed: () => deps.devices.names(),
    listedCount: deps.devices.size,
    admits: (device) => acceptsAll || rowOf(device) !== undefined,
  }

  /** A person's decision also counts while our own time is unknown: the arrival is then taken as right. */
  function openFor(decision: ClockPolicy['onFuture']): Mapper {
    const clocks = { ...mapping.clocks, onFuture: decision, onPast: decision, trustsArrival: true }
    return createMapper(deps, { ...received, clocks })
  }
}

/**
 * A mapper that explains where each value came from. Slow, so the daemon does not use it. Rejects likewise.
 */
export async function openExplainer(
  config: MappingConfig,
  options: OpenMapperOptions = {},
): Promise<Explainer> {
  return (await openMapping(config, options)).explainer()
}

async function partsOf(
  config: MappingConfig,
  options: OpenMapperOptions,
): Promise<{
  deps: MapperDeps & { devices: LoadedDevices }
  mapping: MapperOptions & { clocks: ClockPolicy }
}> {
  const {
    providers = [defaultProvider],
    readFile = createBoundedReader(),
    isRecorded = false,
    ...known
  } = options
  const { sources, problems } = compileSources(config)
  if (problems.length > 0) {
    const lines = problems.map(({ path, message }) => `${path.join('.')} ${message}`)
    throw new GatewayError('CONFIG_INVALID', {
      what: 'The sources of the config cannot be compiled.',
      why: lines.join('\n'),
      act: 'Run `check` for their lines and columns.',
    })
  }
  const { file } = config.devices
  const devices =
    file === undefined
      ? noDevices
      : await loadDevices(
          { readFile },
          { path: file, providers, profiles: Object.keys(config.privacy.profiles) },
        )
  const { future_max: futureMaxMs, on_future: onFuture, on_past: onPast } = config.clocks
  const pastMaxMs = isRecorded ? Infinity : config.clocks.past_max
  return {
    deps: { devices, ...known },
    mapping: { sources, providers, clocks: { futureMaxMs, onFuture, pastMaxMs, onPast } },
  }
}
