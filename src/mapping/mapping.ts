// mapping.ts: the door of the mapping. From a message to payloads.
//
// Promises
//   Total      map() answers for every message whatever, of any bytes and any topic; it never throws.
//   Pure       the same message under the same config and device table gives the same payloads with the same ids,
//              today and after a restart. What sources with coalesce, merge or Sparkplug must remember is told as writes
//              that are committed with the message (state/stateful.ts); all else that remembers changes no name.
//   Honest     a value is converted exactly or not at all, a place or time is never guessed, clamped or patched. What
//              must be right (position, time, device) refuses the message when it is wrong; what may be missing
//              (speed, heading, motion, a signal) is left out and counted.
//   Loud       a message ends as payloads, as ignored with a reason that the config stated, as unmappable with a
//              reason and a sentence, as quarantined (kept whole until its device is listed or its clock judged),
//              as deferred (kept whole until its expression was evaluated), or it is taken as a part of what is
//              collected. There is no other way, and whoever keeps it gets the key under which a resend of it is known.
//
// How
//   The config is compiled once into closures (config.ts, compile.ts). For a message, in this order:
//
//     topic -> source, captures      one tree of all patterns (topic-pattern.ts), remembered per topic (bounded-cache.ts)
//     bytes -> value                 lenient-json.ts, encodings.ts, decoders/; extract.ts unpacks what stands packed inside
//     each                           the record inside, or a list of records: one payload each, all or none (record-selection.ts)
//     device -> what is known of it  device-rule.ts, device-table.ts, remembered per device
//     coalesce                       values of one device become one record first (state/)
//     when                           ignored where it does not hold
//     time, position, signals        time-format.ts, gps.ts, signals.ts over path.ts, value.ts, units.ts, decimal.ts
//     name -> ids -> JSON text       identity.ts, record-mapper.ts: one hash, one text, nothing parsed or written twice
//     thin, merge                    fewer payloads, or halves of one (state/)
//
//   The mapper is mapper.ts, the records of a message message-records.ts, one source at work record-mapper.ts.
//
//   Per message there is no regular expression, no promise, no log line. A refused message may cost more: its
//   sentence is made for a person.
//
// What can go wrong, and what then happens
//   the config is wrong      compileSources reports every problem with its place; nothing is compiled halfway
//   the table is wrong       loadDevices rejects with every bad row
//   a flood of new topics    the cache keeps what is in use and forgets the rest; the answer is worked out again

import { readFile } from 'node:fs/promises'
import { GatewayError } from '../std/gateway-error.ts'
import { defaultProvider, type ProviderName } from '../domain/ids.ts'
import { compileSources } from './compile/compile.ts'
import type { MappingConfig } from './config.ts'
import { loadDevices, noDevices, type DeviceRow } from './devices/device-table.ts'
import { createExplainer, type Explainer } from './explain/explain.ts'
import type { ClockPolicy } from './devices/clock-check.ts'
import { createMapper, type Mapper, type MapperDeps, type MapperOptions } from './mapper/mapper.ts'

export { unmappableReasons } from './reasons.ts'
export { casesSchema, runCases, type CaseResult, type CasesFile } from './cases/cases.ts'
export type { Explained, ExplainedField, Explainer } from './explain/explain.ts'
export { compileSources }
export { messageKeyOf } from './identity.ts'
export type { MapResult } from './types.ts'
export { createMapper, type Mapper } from './mapper/mapper.ts'
export { topicFilterOf } from './path/topic-filter.ts'
export type { StateChanges, UnsentPart } from './state/state-changes.ts'
export { evaluateMessage, mapEvaluation, openEvaluator } from './jsonata/message-evaluation.ts'
export { createEvaluator, type Evaluator } from './jsonata/jsonata.ts'
export { isDecoderState } from './encodings/encodings.ts'
export { loadDevices }

export type OpenMapperOptions = {
  /** Those that payloads can be delivered for. */
  providers?: readonly ProviderName[]
  /** What has to be added to the arrival to get the true time; null while our own time is unknown. */
  clockOffsetMs?: () => number | null
}

/**
 * A mapper from the loaded config. Rejects with DEVICES_INVALID, or CONFIG_INVALID where nobody checked it.
 */
export async function openMapper(config: MappingConfig, options: OpenMapperOptions = {}): Promise<Mapper> {
  const { deps, mapping } = await partsOf(config, options)
  return createMapper(deps, mapping)
}

/** The mapping of a config, for a daemon that also maps messages which it kept. */
export type Mapping = {
  /**
   * A mapper with a memory of its own. `onFuture`: what a person has decided, in place of `clocks.on_future`.
   */
  open(onFuture?: ClockPolicy['onFuture']): Mapper
  rowOf(device: string): DeviceRow | undefined
  /** Whether messages of the device are mapped, as far as the device table and `devices.unknown` say. */
  admits(device: string): boolean
}

/** Rejects as openMapper does. */
export async function openMapping(config: MappingConfig, options: OpenMapperOptions = {}): Promise<Mapping> {
  const { deps, mapping } = await partsOf(config, options)
  const rowOf = (device: string) => deps.devices.find(device)
  const acceptsAll = config.devices.unknown === 'accept'
  return {
    open: (onFuture) => (onFuture === undefined ? createMapper(deps, mapping) : openFor(onFuture)),
    rowOf,
    admits: (device) => acceptsAll || rowOf(device) !== undefined,
  }

  /**
   * What a person has decided counts while our own time is unknown as well: then the arrival is taken for
   * right.
   */
  function openFor(onFuture: ClockPolicy['onFuture']): Mapper {
    const clockOffsetMs = () => deps.clockOffsetMs?.() ?? 0
    return createMapper({ ...deps, clockOffsetMs }, { ...mapping, clocks: { ...mapping.clocks, onFuture } })
  }
}

/**
 * A mapper that is able to say where each value came from. Slow: for people, not for the daemon. Rejects
 * likewise.
 */
export async function openExplainer(
  config: MappingConfig,
  options: OpenMapperOptions = {},
): Promise<Explainer> {
  const { deps, mapping } = await partsOf(config, options)
  return createExplainer(deps, mapping, config)
}

async function partsOf(
  config: MappingConfig,
  options: OpenMapperOptions,
): Promise<{ deps: MapperDeps; mapping: MapperOptions & { clocks: ClockPolicy } }> {
  const { providers = [defaultProvider], clockOffsetMs = () => null } = options
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
      : await loadDevices({ readFile: (path) => readFile(path) }, { path: file, providers })
  const { future_max: futureMaxMs, on_future: onFuture } = config.clocks
  return {
    deps: { devices, clockOffsetMs },
    mapping: { sources, providers, clocks: { futureMaxMs, onFuture } },
  }
}
