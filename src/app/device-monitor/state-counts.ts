// state-counts.ts: how many devices have each state (domain/device-state.ts), without texts and times: all
// devices are counted at each look. The states are those that device-views.ts gives.

import type { EpochMs } from '../../std/clock.ts'
import type { DeviceRecords, Standing } from '../../device-records/device-records.ts'
import { deviceStateOf, noDevices, type DeviceState } from '../../domain/device-state.ts'
import type { ClientView } from '../../ingest/ingest.ts'
import type { Mapping } from '../../mapping/mapping.ts'
import type { DeviceTotals } from '../../ops/ops.ts'
import { isRefused, isShownAlone } from './device-state-text.ts'
import { clientFor, clientsByName, type ClientOwner, type FoundClients } from './device-views.ts'

export type CountedStates = Pick<DeviceTotals, 'total' | 'seen'> & { states: Record<DeviceState, number> }

export type StateCounts = {
  /** Begins a look over all devices. */
  begin(): void
  /** A device with a record. */
  add(standing: Standing): void
  /** Counts listed devices without a record, and clients of no device; yields after each. */
  countOthers(mapping: Mapping): Iterable<void>
  readonly now: CountedStates
}

type Deps = {
  records: Pick<DeviceRecords, 'isKnown'>
  clients: () => FoundClients | null
  now: () => EpochMs
}

const none = (): CountedStates => ({ total: 0, seen: 0, states: noDevices() })

/** Most devices have a client that sends: no client is asked for them. */
export function createStateCounts({ records, clients, now: timeNow }: Deps): StateCounts {
  let now = none()
  let shared: ReadonlySet<string> = new Set()
  /** Clients that may be those of no device, by the user name that they gave, and by their id. */
  let named: ReadonlyMap<string, ClientView> = new Map()
  let others: ReadonlyMap<string, ClientView> = new Map()
  /** Those of `others` that are the client of a device. */
  const owned = new Set<string>()
  return {
    begin() {
      now = none()
      shared = clients()?.shared() ?? new Set()
      const found = [...(clients()?.withoutDevice() ?? [])].filter(isShownAlone)
      named = clientsByName(found)
      others = new Map(found.map((client) => [client.clientId || `\0${client.address}`, client]))
      owned.clear()
    },
    add,
    countOthers,
    get now() {
      return now
    },
  }

  function add(standing: Standing): void {
    const { device, isSilent, isRepeating, lastSeen, loss, sender, mutedUntil } = standing
    const client = clientOf(standing)
    if (lastSeen === null) {
      addNeverSeen(client)
      return
    }
    const state = deviceStateOf({
      ...standing,
      isRefused: client !== null && isRefused(client, lastSeen),
      isSilent,
      isMuted: mutedUntil !== null && mutedUntil > timeNow(),
      isRepeating,
      isLost: loss !== null,
      isIdShared: shared.has(client?.clientId ?? sender?.clientId ?? device),
    })
    now.total += 1
    now.seen += 1
    now.states[state] += 1
  }

  function addNeverSeen(client: ClientView | null): void {
    now.total += 1
    if (client !== null && isRefused(client, null)) now.states.refused += 1
    else now.states[(client?.unnamed ?? null) === null ? 'never_sent' : 'not_mapped'] += 1
  }

  /** Null where it cannot be one of `others`. */
  function clientOf(of: ClientOwner): ClientView | null {
    if (others.size === 0) return null
    const { device, assetId = null, sender } = of
    const names = [sender?.clientId ?? device, assetId ?? device]
    if (!names.some((name) => others.has(name)) && !named.has(device) && !named.has(names[1]!)) return null
    const client = clientFor(of, named, clients())
    if (client !== null) owned.add(client.clientId)
    return client
  }

  function* countOthers(mapping: Mapping): Generator<void> {
    for (const device of mapping.listed()) {
      yield
      const row = mapping.rowOf(device)
      if (records.isKnown(device) || row === undefined) continue
      addNeverSeen(clientOf({ device, assetId: row.asset_id ?? null, sender: null, lastSeen: null }))
    }
    for (const client of others.values()) {
      yield
      const { clientId } = client
      const isDevice = clientId !== '' && (records.isKnown(clientId) || mapping.rowOf(clientId) !== undefined)
      if (!owned.has(clientId) && !isDevice) addNeverSeen(client)
    }
  }
}
