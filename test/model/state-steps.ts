// state-steps.ts: the smallest possible mapping with state. Messages wait in records under a few keys, until
// a record closes and each of its messages becomes a payload. Only the spool remembers the records over a
// restart.

import type { Spool } from '../../src/spool/spool.ts'
import type { LateState } from '../../src/spool/types.ts'
import { exchangeOf } from '../support/spool-world.ts'
import { payloadOf, track, type Mapping, type World } from './model-world.ts'

/** Changed by messages, late or at once. */
const keys = ['bus', 'van "1"', 'lorry\u0000', 'tram'] as const
/** Changed by exchanges, too, which may be written after later messages. */
const exchangedKeys = ['car', 'bike\u0000'] as const

export function createMapping(): Mapping {
  let records = new Map<string, string[]>()
  let readings = 0
  /** The same object for a key, as the memory of a device is. */
  let late = new Map<string, LateState>()
  let restored = false

  async function restore(spool: Spool): Promise<void> {
    readings += 1
    const reading = readings
    const found = new Map<string, string[]>()
    for await (const { key, value } of spool.stateEntries()) found.set(key, value.toString().split(' '))
    // The store was lost again meanwhile: the next opening brings the next reading.
    if (reading !== readings) return
    records = found
    late = new Map()
    restored = true
  }

  function lateOf(key: string): LateState {
    const entry = late.get(key) ?? {
      key,
      get value() {
        return Buffer.from((records.get(key) ?? []).join(' '))
      },
      isWaiting: false,
    }
    late.set(key, entry)
    return entry
  }

  function addTo(names: readonly [string, ...string[]], part: string): { key: string; value: Buffer } {
    const key = names[Number.parseInt(part.replaceAll(/\D/g, ''), 10) % names.length] ?? names[0]
    const parts = [...(records.get(key) ?? []), part]
    records.set(key, parts)
    return { key, value: Buffer.from(parts.join(' ')) }
  }

  return {
    get restored() {
      return restored
    },
    add(spool, part, { isLate }) {
      const { key, value } = addTo(isLate === null ? exchangedKeys : keys, part)
      if (isLate === true) spool.putLateState(lateOf(key))
      else spool.putState(key, value)
    },
    addLater: (part) => addTo(exchangedKeys, part),
    close(key) {
      const parts = records.get(key) ?? []
      records.delete(key)
      return parts
    },
    openKeys: () => [...records.keys()],
    async follow(spool) {
      restored = false
      spool.listen({
        storeLost() {
          restored = false
          readings += 1
        },
        // A loss during the reading ends it; it is read again after the next opening.
        storeReopened: () => void restore(spool).catch(() => undefined),
      })
      await restore(spool)
    },
  }
}

/** A record closes by time: its parts become payloads and its state goes, in one write. */
export function closeSome(world: World): void {
  const { mapping, spool, random } = world
  if (!mapping.restored || spool.holdReason() === 'store_lost') return
  const open = mapping.openKeys()
  if (open.length === 0) return
  const key = random.pick(open)
  const payloads = mapping.close(key).map((part) => payloadOf(part, { provider: 'a' }))
  track(world, spool.exchange(exchangeOf({ payloads, stateChanges: [{ key, value: null }] })))
}
