// source-state.ts: the state of one source, and of one group of sources that merge; and the keys of their
// entries in the spool.

import { defaultProvider, type ProviderName } from '../../domain/ids.ts'
import { createThin, type Thin } from '../filters/thin.ts'
import type { SourceRuntime } from '../routing/routing.ts'
import { createCoalescer, type CoalesceBounds, type Coalescer } from './coalesce.ts'
import { createMerger, type Merger } from './merge.ts'

export type SourceState = {
  runtime: SourceRuntime
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

/** `runtimes`: of all sources. Those that neither collect, thin nor merge have no state. */
export function createStates(runtimes: readonly SourceRuntime[]): States {
  const merging = Map.groupBy(
    runtimes.filter(({ source: { merge } }) => merge !== null),
    ({ source: { merge } }) => merge!.group,
  )
  const collecting = runtimes.filter(({ source: { coalesce } }) => coalesce !== null).length
  const parts = Math.max(1, collecting + merging.size)
  const bounds: CoalesceBounds = { ...boundsOfOne, openBytesMax: Math.floor(openBytesMax / parts) }
  const groups = new Map<string, GroupState>()
  for (const [name, members] of merging) {
    const windowMs = Math.max(...members.map(({ source: { merge } }) => merge!.window))
    const names = members.map(({ source }) => source.name)
    const merger = createMerger({ sources: names, windowMs }, bounds)
    groups.set(name, { name, prefix: prefixOf('merge', name), merger })
  }
  const sources = new Map<string, SourceState>()
  const stores: Store[] = []
  for (const runtime of runtimes) {
    const { name, coalesce, thin, merge } = runtime.source
    if (coalesce === null && thin === null && merge === null) continue
    const prefix = prefixOf('coalesce', name)
    const coalescer = coalesce && createCoalescer(coalesce.rules, bounds)
    const group = (merge && groups.get(merge.group)) ?? null
    sources.set(name, { runtime, prefix, coalescer, thin: thin && createThin(thin), group })
    if (coalescer) stores.push({ label: name, prefix, records: coalescer })
  }
  for (const { name, prefix, merger } of groups.values())
    stores.push({ label: `group ${name}`, prefix, records: merger })
  return { sources, groups, stores }
}

/** The name is quoted, so that its end is known; the rest of a key is the owner, unquoted. */
function prefixOf(kind: 'coalesce' | 'merge', name: string): string {
  return `${kind} ${JSON.stringify(name)} `
}

/** Characters of a key in the spool's table. */
const keyLengthMax = 512

export function isKey(prefix: string, owner: string): boolean {
  return prefix.length + owner.length <= keyLengthMax
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
