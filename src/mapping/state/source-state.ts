// source-state.ts: the state of one source, and of one group of sources that merge; and the keys of their
// entries in the spool.

import type { EpochMs } from '../../std/clock.ts'
import { defaultProvider, type ProviderName } from '../../domain/ids.ts'
import type { Message } from '../../domain/message.ts'
import type { Rejection } from '../types.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import { createCoalescer, type CoalesceBounds, type Coalescer } from './coalesce.ts'
import { createMerger, type MappedRecord, type Merger } from './merge.ts'
import type { CompiledCoalesce } from './coalesced-value.ts'
import type { Withhold } from '../privacy/privacy.ts'
import { createThin, type Thin, type ThinOptions } from './thin.ts'

/** A source with state, as the mapper provides it. */
export type StateSource = {
  name: string
  coalesce: CompiledCoalesce | null
  thin: ThinOptions | null
  merge: { group: string; windowMs: number } | null
  /** `provider` applies where the device table names none. */
  entryOf(device: string, provider: ProviderName): DeviceEntry
  /** The asset, by which the records of a group are merged. */
  assetOf(entry: DeviceEntry): string
  withholdOf(entry: DeviceEntry): Withhold | null
  /** Notes what an incomplete record says about the device (memory/). */
  note(entry: DeviceEntry, record: Record<string, unknown>, time: EpochMs): void
  /** Maps a closed record. `arrived` is the record, or the message that it was kept as. */
  read(
    entry: DeviceEntry,
    record: Record<string, unknown>,
    arrived: Pick<Message, 'arrivedAt' | 'arrival'>,
  ): MappedRecord | Rejection
}

/** A mapped record, and what is known of its device. */
export type DeviceRecord = {
  entry: DeviceEntry
  mapped: MappedRecord
  /** What reads previous values, which has no part in the payloadId. No state has it. */
  later?: Pick<MappedRecord, 'signals' | 'fields'> | null
}

export type SourceState = {
  source: StateSource
  /** Of the keys of its open records. */
  prefix: string
  coalescer: Coalescer | null
  thin: Thin | null
  group: GroupState | null
}

export type GroupState = { name: string; prefix: string; merger: Merger }

export type States = {
  sources: ReadonlyMap<string, SourceState>
  groups: ReadonlyMap<string, GroupState>
  /** The open records of all sources and groups. */
  stores: readonly Store[]
}

type Store = {
  label: string
  prefix: string
  records: Pick<Coalescer, 'nextTickAt' | 'restore' | 'entries' | 'counters'>
}

/** Of one source or group. At a bound, records close early and are counted (coalesce.ts). */
const boundsOfOne = { valuesMax: 256, bytesMax: 65_536, recordsMax: 10_000 }

/**
 * Of all sources and groups, which have equal parts. Half of what the state may take by default
 * (spool.state_max_bytes), so that open records, which any client can begin, do not hold everybody.
 */
const openBytesMax = 32 * 1024 * 1024

export function createStates(sources: readonly StateSource[]): States {
  const coalescers = sources.filter(({ coalesce }) => coalesce !== null).length
  const groupNames = new Set(sources.flatMap(({ merge }) => merge?.group ?? []))
  const parts = Math.max(1, coalescers + groupNames.size)
  const bounds: CoalesceBounds = { ...boundsOfOne, openBytesMax: Math.floor(openBytesMax / parts) }
  const groups = new Map<string, GroupState>()
  for (const { merge } of sources) {
    if (merge === null || groups.has(merge.group)) continue
    const members = sources.filter((other) => other.merge?.group === merge.group)
    const windowMs = Math.max(...members.map((member) => member.merge?.windowMs ?? 0))
    const merger = createMerger({ sources: members.map(({ name }) => name), windowMs }, bounds)
    groups.set(merge.group, { name: merge.group, prefix: prefixOf('merge', merge.group), merger })
  }
  const states = new Map<string, SourceState>()
  for (const source of sources) {
    const { name, coalesce, thin, merge } = source
    states.set(name, {
      source,
      prefix: prefixOf('coalesce', name),
      coalescer: coalesce && createCoalescer(coalesce.rules, bounds),
      thin: thin && createThin(thin),
      group: (merge && groups.get(merge.group)) ?? null,
    })
  }
  const stores: Store[] = []
  for (const { source, prefix, coalescer } of states.values())
    if (coalescer) stores.push({ label: source.name, prefix, records: coalescer })
  for (const { name, prefix, merger } of groups.values())
    stores.push({ label: `group ${name}`, prefix, records: merger })
  return { sources: states, groups, stores }
}

/** The name is quoted, so that its end is known; the rest of a key is the owner, unquoted. */
function prefixOf(kind: 'coalesce' | 'merge', name: string): string {
  return `${kind} ${JSON.stringify(name)} `
}

/**
 * The owner of an open record: a device, or an asset, of a provider. The provider follows the last NUL. It is
 * omitted for the default provider.
 */
export function ownerOf(name: string, provider: ProviderName): string {
  return provider === defaultProvider && !name.includes('\0') ? name : `${name}\0${provider}`
}

export function ownerParts(owner: string): { name: string; provider: ProviderName } {
  const end = owner.lastIndexOf('\0')
  if (end === -1) return { name: owner, provider: defaultProvider }
  return { name: owner.slice(0, end), provider: owner.slice(end + 1) as ProviderName }
}

/** The parts of the key of an entry. */
export type KeyParts = { kind: 'coalesce' | 'merge'; name: string; prefix: string; owner: string }

/** The parts of a key of this folder; null for other keys. */
export function keyParts(key: string): KeyParts | null {
  const match = /^((coalesce|merge) ("(?:[^"\\]|\\.)*") )(.*)$/su.exec(key)
  const [, prefix, kind, quoted, owner] = match ?? []
  if (kind !== 'coalesce' && kind !== 'merge') return null
  if (prefix === undefined || quoted === undefined || owner === undefined) return null
  try {
    return { kind, name: String(JSON.parse(quoted)), prefix, owner }
  } catch (error) {
    if (error instanceof SyntaxError) return null
    throw error
  }
}
