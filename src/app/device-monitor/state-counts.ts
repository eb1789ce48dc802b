// state-counts.ts: how many devices have each state (device-state.ts), without the texts and times of a view:
// all devices are counted at each look. The states are those that device-views.ts gives.

import type { DeviceRecords, Standing } from '../../device-records/device-records.ts'
import type { ClientView } from '../../ingest/ingest.ts'
import type { Mapping } from '../../mapping/mapping.ts'
import type { DeviceTotals } from '../../ops/ops.ts'
import { isRefused } from './device-state.ts'
import { clientFor, refusedByName, type FoundClients } from './device-views.ts'

export type CountedStates = Pick<DeviceTotals, 'neverSent' | 'refused' | 'repeating' | 'notMapped'>

export type StateCounts = {
  /** Begins a look over all devices. */
  begin(): void
  /** A device with a record. */
  add(standing: Standing): void
  /** Counts listed devices without a record, and refused clients; yields after each. */
  countOthers(mapping: Mapping): Iterable<void>
  readonly now: CountedStates
}

type Deps = { records: Pick<DeviceRecords, 'isKnown'>; clients: () => FoundClients | null }

/** Most devices have no client that was refused: no client is asked for them. */
export function createStateCounts({ records, clients }: Deps): StateCounts {
  let now: CountedStates = { neverSent: 0, refused: 0, repeating: 0, notMapped: 0 }
  /** Refused clients, by the user name that they gave, and by their id. */
  let named: ReadonlyMap<string, ClientView> = new Map()
  let refused: ReadonlyMap<string, ClientView> = new Map()
  /** Those of `refused` that are the client of a device. */
  const owned = new Set<string>()
  return {
    begin() {
      now = { neverSent: 0, refused: 0, repeating: 0, notMapped: 0 }
      const found = [...(clients()?.withRefusals() ?? [])].filter((client) => isRefused(client, null))
      named = refusedByName(found)
      refused = new Map(found.map((client) => [client.clientId || `\0${client.address}`, client]))
      owned.clear()
    },
    add,
    countOthers,
    get now() {
      return now
    },
  }

  function add(standing: Standing): void {
    const { isSilent, isRepeating, lastSeen, loss } = standing
    if (refused.size > 0 && isOfRefused(standing)) now.refused += 1
    else if (lastSeen === null) now.neverSent += 1
    else if (isSilent) return
    else if (isRepeating) now.repeating += 1
    else if (loss !== null) now.notMapped += 1
  }

  function isOfRefused(of: Pick<Standing, 'device' | 'sender' | 'lastSeen'>): boolean {
    const { device, sender, lastSeen } = of
    if (!refused.has(sender?.clientId ?? device) && !named.has(device)) return false
    const client = clientFor(of, named, clients())
    if (client === null) return false
    owned.add(client.clientId)
    return isRefused(client, lastSeen)
  }

  function* countOthers(mapping: Mapping): Generator<void> {
    for (const device of mapping.listed()) {
      yield
      if (records.isKnown(device) || mapping.rowOf(device) === undefined) continue
      if (refused.size > 0 && isOfRefused({ device, sender: null, lastSeen: null })) now.refused += 1
      else now.neverSent += 1
    }
    for (const { clientId } of refused.values()) {
      yield
      const isDevice = clientId !== '' && (records.isKnown(clientId) || mapping.rowOf(clientId) !== undefined)
      if (!owned.has(clientId) && !isDevice) now.refused += 1
    }
  }
}
