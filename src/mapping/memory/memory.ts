// memory.ts: what the mapping remembers of a device, the entry file of the folder.
//
//   counter-memory.ts   jumps and falls of odometer and engine hours
//   device-memory.ts    what is remembered of one device, and its stored form
//
// The filters (../filters/) read and change it: remembered-values.ts, counters.ts.
//
// Guarantees
//   Durable   a change is a write that is committed with the message that caused it. After a failed write
//             `restore` with the entries of the spool brings the memory back to them.
//   Nameless  what is remembered adds and removes fields after the payloadId was made. A message has the same
//             name whatever came before it.
//   By time   an older message neither uses nor changes what a newer one said. The order is that of device
//             times; a message without one has its arrival.
//   Again     the same message mapped a second time changes nothing.
//
// Keys in the spool: `memory "SOURCE" DEVICE`, the device as in state/source-state.ts (ownerOf).
//
// Bound: `bytesMax`, of entries as large as they can usually become. Beyond, a device that sent once since
// the last turn is forgotten (second chance), counted as an eviction: its next message is the first one
// again. A flood of invented names evicts itself.
// Entries of a source that the config does not have any more are deleted with the next tick.

import type { DeviceEntry } from '../devices/devices.ts'
import { ownerOf, ownerParts } from '../state/source-state.ts'
import type { StateWrite } from '../types.ts'
import {
  decodeMemory,
  encodeMemory,
  previousTextMax,
  type RememberedValue,
  type CounterState,
  type DeviceMemory,
} from './device-memory.ts'

/**
 * Also its own write: encoded once for all messages that are committed together, and once more when the spool
 * puts it under its own key, so it changes only where it is put. It is a class, since an object with a getter
 * of its own takes four times as much.
 */
class Stored implements DeviceMemory {
  readonly key: string
  asset: string
  values: Map<string, RememberedValue>
  counters = new Map<string, CounterState>()
  inUse = true
  /** It is in the open group of the spool, which will contain further changes. */
  isWaiting = false
  used = false
  /** It is in `changes`. */
  changed = false
  /** What it counts for. */
  readonly bytes: number
  /** The list of this write alone, which is usual. */
  readonly alone: readonly StateWrite[] = [this]

  constructor(key: string, asset: string, { remember, counters, previous }: MemorySource) {
    const values = (remember?.names.length ?? 0) + (counters?.length ?? 0)
    this.key = key
    this.asset = asset
    this.values = remember === null && previous === null ? noValues : new Map<string, RememberedValue>()
    this.bytes =
      entryBytes + 2 * key.length + valueBytes * values + previousBytes * (previous?.names.size ?? 0)
  }

  get value(): Buffer {
    return encodeMemory(this)
  }
}

/** Of the devices of a source that remembers none. */
const noValues = new Map<string, RememberedValue>()

/** What a source remembers of a device: values, counters, and previous values. */
type MemorySource = {
  readonly name: string
  readonly remember: { readonly names: readonly string[] } | null
  readonly counters: readonly unknown[] | null
  readonly previous: { readonly names: ReadonlySet<string> } | null
}

type Forgotten = { values: number; writes: readonly StateWrite[] }

export type Memory = ReturnType<typeof createMemory>

/** The start of the keys. */
export const memoryKeyHead = 'memory '

const keyLengthMax = 512

/**
 * What an entry counts for besides its name, and a value of it: more than they take in the spool, as they
 * take more in memory.
 */
const entryBytes = 128
const valueBytes = 48

/** Of a previous value, with its name and a text of the largest length. */
const previousBytes = 48 + 2 * previousTextMax

/** About 120,000 devices with odometer and engine hours; less than half of what the state may take. */
const bytesMaxDefault = 32 * 1024 * 1024

export function createMemory(sources: readonly MemorySource[], bytesMax = bytesMaxDefault) {
  const remembering = sources.filter(
    ({ remember, counters, previous }) => remember !== null || counters !== null || previous !== null,
  )
  const heads = new Map(remembering.map(({ name }) => [name, `${memoryKeyHead}${JSON.stringify(name)} `]))
  const sourcesByName = new Map(remembering.map((one) => [one.name, one]))
  /** In the order in which they are looked at for an eviction. */
  const devices = new Map<string, Stored>()
  /**
   * The next eviction continues here. A new iterator would first pass all that were deleted.
   */
  let hand: MapIterator<[string, Stored]> | null = null
  /** Of all entries in `devices`. */
  let bytes = 0
  let changes: Stored[] = []
  let cleanup: StateWrite[] = []
  let evictions = 0
  let damaged = 0
  return {
    of,
    /** The same without adding one. */
    known: (source: string, entry: DeviceEntry): DeviceMemory | null =>
      devices.get(keyOf(source, entry)) ?? null,
    changed,
    takeWrites,
    /** Entries to be deleted wait. */
    hasCleanup() {
      return cleanup.length > 0
    },
    takeCleanup() {
      const taken = cleanup
      cleanup = []
      return taken
    },
    forget,
    restore,
    entries,
    counters: () => ({ devices: devices.size, evictions, damaged }),
  }

  function keyOf(source: string, { device, provider }: DeviceEntry): string {
    return (heads.get(source) ?? '') + ownerOf(device, provider)
  }

  /** What is remembered of a device, new where nothing is. Null where its name is too long for a key. */
  function of(source: string, entry: DeviceEntry): DeviceMemory | null {
    const cached = entry.memory as Stored | null
    if (cached !== null && cached.inUse) {
      cached.used = true
      return cached
    }
    const found = find(source, entry)
    entry.memory = found
    return found
  }

  function find(source: string, entry: DeviceEntry): DeviceMemory | null {
    const key = keyOf(source, entry)
    const found = devices.get(key)
    if (found !== undefined) {
      found.used = true
      return found
    }
    if (key.length > keyLengthMax) return null
    return added(new Stored(key, entry.assetId, sourceNamed(source)))
  }

  function added(one: Stored): Stored {
    devices.set(one.key, one)
    bytes += one.bytes
    return one
  }

  function sourceNamed(name: string): MemorySource {
    return sourcesByName.get(name) ?? { name, remember: null, counters: null, previous: null }
  }

  /** Adds it to the writes. */
  function changed(memory: DeviceMemory): void {
    const stored = memory as Stored
    if (stored.isWaiting || stored.changed) return
    stored.changed = true
    changes.push(stored)
  }

  /**
   * The changes since the last call; null for none. They are to be taken before the next message. A device
   * whose write waits in the spool is not among them.
   */
  function takeWrites(): readonly StateWrite[] | null {
    if (changes.length === 0 && bytes <= bytesMax) return null
    const first = changes[0]
    if (first !== undefined && changes.length === 1 && bytes <= bytesMax) {
      first.changed = false
      changes.length = 0
      return first.alone
    }
    const taken: StateWrite[] = changes
    for (const one of changes) one.changed = false
    changes = []
    while (bytes > bytesMax) taken.push(evict())
    return taken
  }

  function evict(): StateWrite {
    hand ??= devices.entries()
    for (;;) {
      const { value: next } = hand.next()
      if (next === undefined) throw new Error('unreachable: after one turn no device is marked as used')
      const [key, one] = next
      devices.delete(key)
      if (one.used) {
        one.used = false
        devices.set(key, one)
        continue
      }
      evictions += 1
      bytes -= one.bytes
      one.inUse = false
      return { key, value: null }
    }
  }

  /**
   * Forgets a device, or one signal or value of it, in all sources. Returns what makes it durable, and how
   * many values were forgotten.
   */
  function forget(device: string, signal: string | null): Forgotten {
    const writes: StateWrite[] = []
    let values = 0
    for (const [key, one] of devices) {
      const head = [...heads.values()].find((start) => key.startsWith(start)) ?? ''
      if (ownerParts(key.slice(head.length)).name !== device) continue
      const before = one.counters.size + one.values.size
      forgetIn(one, signal)
      const left = one.counters.size + one.values.size
      values += before - left
      if (before > left) writes.push(left === 0 ? { key, value: null } : one)
    }
    return { values, writes }
  }

  function forgetIn(one: Stored, signal: string | null): void {
    for (const name of one.values.keys()) if (signal === null || name === signal) one.values.delete(name)
    for (const name of one.counters.keys())
      if (signal === null || name === signal || name.startsWith(`${signal} `)) one.counters.delete(name)
  }

  function restore(stored: Iterable<readonly [string, Buffer]>): void {
    for (const one of devices.values()) one.inUse = false
    devices.clear()
    bytes = 0
    hand = null
    changes = []
    cleanup = []
    damaged = 0
    const known = [...heads]
    for (const [key, value] of stored) {
      if (!key.startsWith(memoryKeyHead)) continue
      const [source] = known.find(([, head]) => key.startsWith(head)) ?? []
      const content = source === undefined ? null : decodeMemory(value)
      if (source === undefined || content === null) {
        if (source !== undefined) damaged += 1
        cleanup.push({ key, value: null })
      } else added(Object.assign(new Stored(key, content.asset, sourceNamed(source)), content))
    }
  }

  function* entries(): Generator<[string, Buffer]> {
    for (const [key, one] of devices) yield [key, Buffer.from(one.value)]
  }
}
