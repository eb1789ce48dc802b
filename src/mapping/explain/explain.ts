// explain.ts: a mapper that reports for each message where every value of its payloads came from, and why a
// value is missing. The entry file of the folder. It is slow and meant for a person who works on a mapping;
// the daemon does not use it.
//
// It is the mapper of the daemon with sources that record what happens (explain-trace.ts). Then each field of
// each record is explained alone (explain-field.ts), with closures that the same functions compile. A test
// over the cases of all presets checks that explanations agree with payloads.

import type { EpochMs } from '../../std/clock.ts'
import type { Message } from '../../domain/message.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import { createRecordContext } from '../mapper/record-context.ts'
import type { MappingConfig, SourceConfig } from '../config.ts'
import { compileDeviceTemplate, deviceNamed } from '../devices/device-rule.ts'
import type { ExplainedField } from './explained-field.ts'
import { compileExplainer, type ExplainRecord } from './explain-record.ts'
import { withPayloads } from './explain-payloads.ts'
import { createDeclinedSources, type DeclinedSource } from './explain-declined.ts'
import { compileExplainUnread, nearMissing, type ExplainUnread } from './explain-unread.ts'
import { findBy, type PlacedRecord } from './path-finder.ts'
import { tracedSource, type Trace, type TracedValue, type Traces } from './explain-trace.ts'
import { createMapper, type Mapper, type MapperDeps, type MapperOptions } from '../mapper/mapper.ts'
import { ignoredControllers } from '../extract/other-controllers.ts'
import type { DeviceRow } from '../devices/device-table.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import { createRouting, type Route } from '../routing/routing.ts'
import { withPlausibility } from '../plausibility/plausibility.ts'
import { createWithheldCounts } from '../plausibility/withheld-counts.ts'
import { zoneOf, type Zone } from '../times/zones.ts'
import type { StateChanges } from '../state/state-changes.ts'
import { compileConditionParts, type ConditionParts } from '../expression/condition-parts.ts'
import { propertyReadBy } from '../path/packet-properties.ts'
import { isRecord } from '../path/path-eval.ts'
import { previousValuesOf } from '../path/previous-record.ts'
import type { UnreadKeys } from '../path/unread-keys.ts'
import type { MapResult } from '../types.ts'
import type { CompiledSource } from '../mapper/compiled-source.ts'

export type { ExplainedField }

export type ExplainedDevice = {
  /** Null when nothing names it. */
  name: string | null
  /** What named it: `{device} of the topic`, `path imei`. */
  from: string
  /** Whether the device table has it. */
  listed: boolean
  family: string | null
  /** The model that the family was looked up with; null where none is known. */
  model: string | null
  /** Values of the source depend on the model. */
  hasFamilies: boolean
}

export type ExplainedCondition = {
  option: string
  text: string
  holds: boolean
  /** Where it is false: the parts that do not hold. */
  parts: ConditionParts | null
}

export type ExplainedRecord = {
  device: ExplainedDevice
  conditions: readonly ExplainedCondition[]
  /** The keys of `extract`, whether a value was unpacked, and those of other controllers of a bus. */
  unpacked: readonly { into: string; found: boolean; ignored: readonly string[] }[]
  /** What paths with `$previous` found, and when it was sent. */
  previous: readonly { path: string; value: unknown; time: EpochMs }[]
  fields: readonly ExplainedField[]
  /** Null when the record has no payload, or none yet. */
  payloadId: string | null
}

export type Explained = {
  /** Null for collected records that closed. */
  topic: string | null
  captures: Readonly<Record<string, string>>
  /** Single values of a source that collects. */
  values: readonly TracedValue[]
  /** In the order in which they were asked. */
  declined: readonly DeclinedSource[]
  /** The result of the expression of the source, which replaced the message. */
  records: readonly ExplainedRecord[]
  /** The keys of the message that nothing reads; null where it cannot be said. */
  unread: UnreadKeys | null
}

export type Explainer = {
  mapper: Mapper
  /** Explains the last message of the mapper; once, right after it. */
  explain(message: Message, result: MapResult): Explained
  /** Explains the records that the last apply() or tick() closed. */
  explainApplied(applied: StateChanges): Explained
}

type SourceExplainer = {
  config: SourceConfig
  source: CompiledSource
  explain: ExplainRecord
  unread: ExplainUnread
}

export function createExplainer(deps: MapperDeps, options: MapperOptions, config: MappingConfig): Explainer {
  const { devices } = deps
  const traces: Traces = { records: [], values: [] }
  const sources = options.sources.map((source) => tracedSource(source, traces))
  const declined = createDeclinedSources((name) => explainers.get(name)?.config ?? null)
  const mapper = createMapper(deps, { ...options, sources, onDeclined: declined.note })
  // A second one, so that the explanation changes no counters of the mapper.
  const routing = createRouting({ devices }, { providers: [], ...options })
  const explainers = new Map<string, SourceExplainer>()
  const written = withPlausibility(config)
  for (const source of options.sources) {
    const own = written.find(({ name }) => name === source.name)
    if (own)
      explainers.set(source.name, {
        config: own,
        source,
        explain: compileExplainer(own, source.captures),
        unread: compileExplainUnread(own, source),
      })
  }
  return { mapper, explain, explainApplied }

  function explain(message: Message, result: MapResult): Explained {
    const { records, values } = takeTraces()
    const route = routeOf(message, result.source)
    const payloads = result.kind === 'payloads' ? result.payloads : []
    const explained = withPayloads(records, payloads).map(([trace, payload]) =>
      explainTrace(trace, payload, route, message),
    )
    const unread = route === null ? null : unreadIn(message, route, records)
    return {
      topic: message.topic,
      captures: route === null ? {} : namesOf(route),
      values,
      declined: declined.take(),
      records: explained,
      unread: unread && nearMissing(unread, explained),
    }
  }

  /** That of the source of the result, where several have the topic. */
  function routeOf(message: Message, source: string | null): Route | null {
    const first = routing.routeOf(message.topic, message.from)
    return (
      (source === null ? null : routing.routeOfSource(source, message)) ??
      (first.runtime === null ? null : first)
    )
  }

  function explainApplied({ payloads }: StateChanges): Explained {
    const { records, values } = takeTraces()
    const explained = withPayloads(records, payloads).map(([trace, payload]) =>
      explainTrace(trace, payload, null, null),
    )
    const unread = records.map((trace) => explainers.get(trace.source)?.unread.ofCollected(trace) ?? null)
    const [first = null] = unread.filter((one) => one !== null && one.keys.length > 0)
    return {
      topic: null,
      captures: {},
      values,
      declined: [],
      records: explained,
      unread: first && nearMissing(first, explained),
    }
  }

  function unreadIn(message: Message, { runtime, captures }: Route, records: readonly Trace[]) {
    const { unread } = explainers.get(runtime.source.name) ?? {}
    return unread?.ofMessage(message, captures, records) ?? null
  }

  function takeTraces(): Traces {
    return { records: traces.records.splice(0), values: traces.values.splice(0) }
  }

  function explainTrace(
    trace: Trace,
    payload: MappedPayload | null,
    route: Route | null,
    message: Message | null,
  ): ExplainedRecord {
    const own = explainers.get(trace.source)
    const { record, root, up } = trace
    const captures = route?.captures ?? own?.source.captures.map(() => '') ?? []
    const place = { record, root, up, captures }
    const entry = entryIn(place, route, message)
    const name = entry?.device ?? payload?.device ?? null
    const row = name === null ? undefined : devices.find(name)
    const families = Object.keys(own?.config.families ?? {})
    const family = families[(trace.family ?? entry?.family ?? 0) - 1] ?? null
    const from = route === null ? 'the collected values' : fromOf(own?.config, place, route, message)
    const at = { ...place, trace, family, payload, arrivedAt: message?.arrivedAt ?? null }
    return {
      device: {
        name,
        from,
        listed: row !== undefined,
        family,
        model: modelOf(row, own),
        hasFamilies: families.length > 0,
      },
      conditions: own ? conditionsOf(own, trace, captures) : [],
      unpacked: own ? unpackedIn(own, root, captures) : [],
      previous: [...(previousValuesOf(record) ?? [])].map(([path, one]) => ({ path, ...one })),
      fields: own ? own.explain({ ...at, profile: row?.privacy ?? null, zone: zoneOfDevice(row, own) }) : [],
      payloadId: payload?.payloadId ?? null,
    }
  }

  function entryIn(place: PlacedRecord, route: Route | null, message: Message | null): DeviceEntry | null {
    if (route === null || message === null) return null
    if (route.entry) return route.entry
    const { source, devices: entries } = route.runtime
    const context = Object.assign(createRecordContext(createWithheldCounts()), place, {
      sender: message.sender,
      userProperties: message.userProperties ?? null,
      properties: message.properties ?? null,
    })
    const name = deviceNamed(source.device, context)
    return name === null ? null : entries.entryOf(name, route.provider)
  }
}

function modelOf(row: DeviceRow | undefined, own: SourceExplainer | undefined): string | null {
  return row?.model ?? own?.source.deviceOptions.defaults.model ?? null
}

function zoneOfDevice(row: DeviceRow | undefined, own: SourceExplainer | undefined): Zone | null {
  const name = row?.zone ?? own?.source.deviceOptions.defaults.zone
  return name === undefined ? null : zoneOf(name)
}

function namesOf({ runtime, captures }: Route): Record<string, string> {
  return Object.fromEntries(runtime.source.captures.map((name, index) => [name, captures[index] ?? '']))
}

function conditionsOf(
  { config: { refuse, when, fix }, source }: SourceExplainer,
  trace: Trace,
  captures: readonly string[],
): ExplainedCondition[] {
  const conditions: ExplainedCondition[] = []
  const add = (option: string, text: string, holds: boolean) => {
    const parts = holds ? null : compileConditionParts(text, source.captures)({ ...trace, captures })
    conditions.push({ option, text, holds, parts })
  }
  const rule = refuse.find(({ reason }) => reason === trace.refused)
  if (rule) add('refuse', rule.when, true)
  if (when !== undefined && trace.when !== null) add('when', when, trace.when)
  if (fix?.valid !== undefined && trace.valid !== null) add('fix.valid', fix.valid, trace.valid)
  return conditions
}

function unpackedIn(
  { config: { extract }, source }: SourceExplainer,
  root: unknown,
  captures: readonly string[],
): ExplainedRecord['unpacked'] {
  const keys = [...new Set(extract.map(({ into }) => into))]
  const ignored = ignoredControllers(extract, source.captures)(root, captures)
  return keys.map((into) => ({
    into,
    found: isRecord(root) && Object.hasOwn(root, into),
    ignored: ignored.filter((one) => one.into === into).map(({ text }) => text),
  }))
}

/** Which rule named the device. */
function fromOf(
  config: SourceConfig | undefined,
  place: PlacedRecord,
  { runtime, captures }: Route,
  message: Message | null,
): string {
  const rules = [config?.device ?? '{device}'].flat()
  for (const rule of rules) {
    if (typeof rule !== 'string') {
      const { path, raw } = findBy(rule, runtime.source.captures, place)
      if (path === null || raw === undefined) continue
      return 'expr' in rule ? `expression ${path}` : (propertyReadBy(path) ?? `path ${path}`)
    }
    const template = compileDeviceTemplate(rule, runtime.source.captures)
    if (template.kind === 'record' || message === null) continue
    if (template.name(captures, message) !== '') return `${rule} of the ${template.kind}`
  }
  const tried = rules.map((rule) =>
    typeof rule === 'string'
      ? rule
      : 'expr' in rule
        ? `expression ${rule.expr}`
        : `path ${[rule.path].flat().join(', ')}`,
  )
  return `nothing: ${tried.join('; ')}`
}
