// state-steps.ts: the smallest possible mapping with state. Messages wait in records under a few keys, until
// a record closes and each of its messages becomes a payload. Only the spool remembers the records over a
// restart.

import type { Spool } from '../../src/spool/spool.ts'
import { exchangeOf } from '../support/spool-world.ts'
import { payloadOf, track, type Mapping, type World } from './model-world.ts'

const keys = ['bus', 'van "1"', 'lorry\u0000'] as const

export function createMapping(): Mapping {
  let records = new Map<string, string[]>()
  let readings = 0
  let restored = false

  async function restore(spool: Spool): Promise<void> {
    readings += 1
    const reading = readings
    const found = new Map<string, string[]>()
    for await (const { key, value } of spool.stateEntries()) found.set(key, value.toString().split(' '))
    // The store was lost again meanwhile: the next opening brings the next reading.
    if (reading !== readings) return
    records = found
    restored = true
  }

  function addLater(part: string): { key: string; value: Buffer } {
    const key = keys[part.length % keys.length] ?? keys[0]
    const parts = [...(records.get(key) ?? []), part]
    records.set(key, parts)
    return { key, value: Buffer.from(parts.join(' ')) }
  }

  return {
    get restored() {
      return restored
    },
    add(spool, part) {
      const { key, value } = addLater(part)
      spool.putState(key, value)
    },
    addLater,
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
  if (!mapping.restored || spool.holdReason === 'store_lost') return
  const open = mapping.openKeys()
  if (open.length === 0) return
  const key = random.pick(open)
  const payloads = mapping.close(key).map((part) => payloadOf(part, { provider: 'a' }))
  track(world, spool.exchange(exchangeOf({ payloads, stateChanges: [{ key, value: null }] })))
}
