// killed-mapping.ts: a mapper whose changes go to a spool on real LevelDB, as the intake writes them, and a
// kill: the files as they are after the last acknowledgement are opened by another spool and mapper.

import type { Message } from '../../src/domain/message.ts'
import type { MappedPayload } from '../../src/domain/payload.ts'
import type { Mapper, MapResult, StateChanges } from '../../src/mapping/mapping.ts'
import { putWrites } from '../../src/ingest/intake/state-writes.ts'
import { killedCopy } from './killed-copy.ts'
import { openMapperOf, type World } from './mapping-world.ts'
import { openSpoolWorld } from './open-spool.ts'

export type KilledMapping = {
  mapper: Mapper
  payloads: MappedPayload[]
  /** Maps one message; resolves when all that it changed is durable. */
  deliver(message: Message): Promise<MapResult>
  tick(nowMs: number): Promise<void>
  /** The number of values that were forgotten, when that is durable. */
  forget(device: string, signal: string | null): Promise<number>
  /** Nothing of the memory of the process is left. `changed`: another config or device table. */
  kill(changed?: { sources?: readonly unknown[]; world?: World }): Promise<void>
}

export async function openKilledMapping(
  first: readonly unknown[],
  world: World = {},
): Promise<KilledMapping> {
  let sources = first
  let config = world
  let { spool, path } = await openSpoolWorld()
  const opened: KilledMapping = {
    mapper: openMapperOf(sources, config),
    payloads: [],
    async deliver(message) {
      const result = opened.mapper.map(message)
      putWrites(spool, result.writes ?? [])
      if (result.kind === 'payloads') for (const payload of result.payloads) append(payload)
      if (result.kind === 'part') put(result.apply())
      await committed()
      return result
    },
    async tick(nowMs) {
      const closed = opened.mapper.tick(nowMs)
      if (closed !== null) put(closed)
      await committed()
    },
    async forget(device, signal) {
      const { values, writes } = opened.mapper.forget(device, signal)
      await spool.exchange({ take: [], payloads: [], deadLetters: [], stateChanges: writes })
      return values
    },
    async kill(changed = {}) {
      ;({ spool, path } = await openSpoolWorld({ path: await killedCopy(path) }))
      sources = changed.sources ?? sources
      config = changed.world ?? config
      opened.mapper = openMapperOf(sources, config)
      const entries: [string, Buffer][] = []
      for await (const { key, value } of spool.stateEntries()) entries.push([key, value])
      opened.mapper.restore(entries)
    },
  }
  return opened

  function put({ writes, payloads }: StateChanges): void {
    putWrites(spool, writes)
    for (const payload of payloads) append(payload)
  }

  function append(payload: MappedPayload): void {
    spool.append(payload)
    opened.payloads.push(payload)
  }

  function committed(): Promise<void> {
    return new Promise((resolve, reject) => {
      spool.endMessage((fault) => {
        if (fault === null) resolve()
        else reject(fault)
      })
    })
  }
}
