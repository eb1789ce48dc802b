// state-world.ts: a mapper with state, and a spool in memory that stores its changes as the intake does.

import { defaultProvider, type ProviderName } from '../../src/domain/ids.ts'
import type { Message } from '../../src/domain/message.ts'
import type { MappedPayload } from '../../src/domain/payload.ts'
import { compileSources } from '../../src/mapping/compile/compile.ts'
import { parseDevices } from '../../src/mapping/devices/device-table.ts'
import { memoryKeyHead } from '../../src/mapping/memory/memory.ts'
import { createMapper, type StateChanges, type UnsentPart, type Mapper } from '../../src/mapping/mapping.ts'
import { configOf, type World } from './mapping-world.ts'

export type StateWorld = {
  mapper: Mapper
  /** The content of the spool: state entries and payloads. */
  kept: Map<string, Buffer>
  /** The entries that remember devices (src/mapping/memory). */
  remembered: Map<string, Buffer>
  payloads: MappedPayload[]
  unsent: UnsentPart[]
  closedMessages: number
  /** Gives a message to the mapper as the intake does; `duplicate` when the dedup window has it. */
  deliver(message: Message): string
  tick(nowMs: number): void
  /** Restores the state from the entries that were written. */
  restart(): void
}

/** The time of the gateway is known and correct. */
const clockOffsetMs = () => 0

export function openStates(
  sources: readonly unknown[],
  world: World & { providers?: readonly string[] } = {},
): StateWorld {
  const config = configOf(sources, world)
  const compiled = compileSources(config)
  if (compiled.problems.length > 0) throw new Error(JSON.stringify(compiled.problems))
  const { table } = parseDevices(Buffer.from(world.table ?? 'device\n'))
  const { future_max: futureMaxMs, on_future: onFuture } = config.clocks
  const clocks = { futureMaxMs, onFuture }
  const providers = [defaultProvider, ...(world.providers ?? []).map((name) => name as ProviderName)]
  const open = () =>
    createMapper({ devices: table, clockOffsetMs }, { sources: compiled.sources, providers, clocks })
  const window = new Set<string>()
  const states: StateWorld = {
    mapper: open(),
    kept: new Map(),
    remembered: new Map(),
    payloads: [],
    unsent: [],
    closedMessages: 0,
    deliver,
    tick(nowMs) {
      const applied = states.mapper.tick(nowMs)
      if (applied) commit(applied)
    },
    restart() {
      states.mapper = open()
      states.mapper.restore([...states.kept, ...states.remembered])
    },
  }
  return states

  function deliver(message: Message): string {
    const result = states.mapper.map(message)
    store(result.writes ?? [])
    if (result.kind === 'payloads') for (const payload of result.payloads) append(payload, message.dup)
    if (result.kind === 'ignored') states.unsent.push({ ...result, kind: 'ignored', messages: 1 })
    if (result.kind !== 'part') return result.kind
    const judged = result.duplicateRule === 'always' || message.dup
    if (judged && window.has(result.windowKey)) return 'duplicate'
    window.add(result.windowKey)
    commit(result.apply())
    return result.kind
  }

  function commit({ payloads, writes, closed, unsent }: StateChanges): void {
    for (const payload of payloads) append(payload, false)
    store(writes)
    states.closedMessages += closed
    states.unsent.push(...unsent)
  }

  function store(writes: StateChanges['writes']): void {
    for (const { key, value } of writes) {
      const entries = key.startsWith(memoryKeyHead) ? states.remembered : states.kept
      if (value === null) entries.delete(key)
      else entries.set(key, Buffer.from(value))
    }
  }

  function append(payload: MappedPayload, dup: boolean): void {
    const judged = payload.duplicateRule === 'always' || dup
    if (judged && window.has(payload.windowKey)) return
    window.add(payload.windowKey)
    states.payloads.push(payload)
  }
}
