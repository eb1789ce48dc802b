// source-state.ts: what is remembered for one source, and for one group of sources that merge.

import type { EpochMs } from '../../std/clock.ts'
import { defaultProvider, type ProviderName } from '../../domain/ids.ts'
import type { QuarantineReason } from '../reasons.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import { createCoalescer, type CoalesceBounds, type Coalescer } from './coalesce.ts'
import { createMerger, type MappedRecord, type Merger } from './merge.ts'
import type { CompiledCoalesce } from './coalesced-value.ts'
import type { Withhold } from '../privacy/privacy.ts'
import { createThin, type Thin, type ThinOptions } from './thin.ts'

/** A source with memory, as the mapping offers it. */
export type StateSource = {
  name: string
  coalesce: CompiledCoalesce | null
  thin: ThinOptions | null
  merge: { group: string; windowMs: number } | null
  /** `provider` counts where the device table names none. */
  entryOf(device: string, provider: ProviderName): DeviceEntry
  /** Whose payload it is in the end: halves of one asset go together. */
  assetOf(entry: DeviceEntry): string
  withholdOf(entry: DeviceEntry): Withhold | null
  /** What a record that closed says. */
  read(
    entry: DeviceEntry,
    record: Record<string, unknown>,
    arrivedAt: EpochMs,
  ): MappedRecord | Refusal | Skipped
}

export type Refusal =
  | { kind: 'refused'; reason: string; detail: string }
  | { kind: 'quarantined'; reason: QuarantineReason; detail: string }

/** Deliberately nothing; `reason` is one of a bounded set of texts. */
export type Skipped = { kind: 'ignored'; reason: string }

export type DeviceRecord = { entry: DeviceEntry; mapped: MappedRecord }

export type SourceState = {
  source: StateSource
  /** Begins the keys of its open records. */
  prefix: string
  coalescer: Coalescer | null
  thin: Thin | null
  group: GroupState | null
}

export type GroupState = { name: string; prefix: string; merger: Merger }

export type States = {
  sources: ReadonlyMap<string, SourceState>
  groups: ReadonlyMap<string, GroupState>
  /** Everything that holds open records. */
  holders: readonly Holder[]
}

export type Holder = {
  label: string
  prefix: string
  holds: Pick<Coalescer, 'nextTickAt' | 'restore' | 'entries' | 'counters'>
}

/** Of one source, or group. Beyond a bound, records close early and are counted (coalesce.ts). */
const bounds: CoalesceBounds = {
  valuesMax: 256,
  bytesMax: 65_536,
  recordsMax: 10_000,
  openBytesMax: 64 * 1024 * 1024,
}

export function createStates(sources: readonly StateSource[]): States {
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
  const holders: Holder[] = []
  for (const { source, prefix, coalescer } of states.values())
    if (coalescer) holders.push({ label: source.name, prefix, holds: coalescer })
  for (const { name, prefix, merger } of groups.values())
    holders.push({ label: `group ${name}`, prefix, holds: merger })
  return { sources: states, groups, holders }
}

/** The name in quotes ends where its quote does; the rest of a key is the owner as it is. */
function prefixOf(kind: 'coalesce' | 'merge', name: string): string {
  return `${kind} ${JSON.stringify(name)} `
}

/**
 * Whose open record it is: a device, or an asset, of a provider. The provider is left out where it is the only
 * one, and stands behind the last NUL.
 */
export function ownerOf(name: string, provider: ProviderName): string {
  return provider === defaultProvider && !name.includes('\0') ? name : `${name}\0${provider}`
}

export function ownerParts(owner: string): { name: string; provider: ProviderName } {
  const end = owner.lastIndexOf('\0')
  if (end === -1) return { name: owner, provider: defaultProvider }
  return { name: owner.slice(0, end), provider: owner.slice(end + 1) as ProviderName }
}

export type KeyParts = { kind: 'coalesce' | 'merge'; name: string; prefix: string; owner: string }

/** The parts of a key that was made here; null for keys of others. */
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
