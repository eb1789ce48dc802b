// changed-clients.ts: which clients changed since they were last written, so that what is known of them
// outlives the process (device-records/client-records.ts).
//
// A client that is forgotten is removed from the disk, too, if it is there. One that was never written leaves
// nothing behind, so a flood of invented client ids does not grow the set.

import type { EpochMs } from '../../../std/clock.ts'
import type { ClientView } from './types.ts'

/** `view`: null for a client that was forgotten. */
export type ChangedClient = { key: string; view: ClientView | null }

/** `savedAt`: when it was written. */
export type StoredClient = { key: string; view: ClientView; savedAt: EpochMs }

type Tracked = { key: string; isStored: boolean }

export function createChangedClients() {
  const keys = new Set<string>()
  return { changed, forgotten, take }

  function changed({ key }: Tracked): void {
    keys.add(key)
  }

  function forgotten({ key, isStored }: Tracked): void {
    if (isStored) keys.add(key)
    else keys.delete(key)
  }

  /** At most `most`, those that changed first. */
  function take(most: number, viewOf: (key: string) => ClientView | null): readonly ChangedClient[] {
    const taken: ChangedClient[] = []
    for (const key of keys) {
      if (taken.length >= most) break
      keys.delete(key)
      taken.push({ key, view: viewOf(key) })
    }
    return taken
  }
}
