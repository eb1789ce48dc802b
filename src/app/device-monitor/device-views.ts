// device-views.ts: one device as a person asks for it: its record, its row of the device table, its client,
// and what the mapping in force says (device-state.ts).
//
// A client that was refused may be a device of which no message ever came. It belongs to the device that has
// its client id, or the user name that it gave, as its key; else it is in the list under its client id, or
// under its address where its CONNECT was never read. Asked for by its client id, each client is found: one
// that the gateway closes at its first message would not be known otherwise.

import { isoTime, isoTimeOrNull, type Clock } from '../../std/clock.ts'
import type { DeviceRecords, DeviceRecordView, Loss } from '../../device-records/device-records.ts'
import type { ClientView, Ingest } from '../../ingest/ingest.ts'
import type { Mapper, Mapping } from '../../mapping/mapping.ts'
import type { DeviceClient, DeviceView } from '../../ops/ops.ts'
import { isRefused, stateOf, stateOfClient } from './device-state.ts'

export type FoundClients = Pick<Ingest['clients'], 'find' | 'findAddress' | 'withRefusals'>

export type ViewDeps = {
  clock: Clock
  active: () => { mapper: Mapper; mapping: Mapping }
  records: Pick<DeviceRecords, 'find' | 'isKnown' | 'views'>
  clients: () => FoundClients | null
}

export function createDeviceViews({ clock, active, records, clients }: ViewDeps) {
  return { device, all }

  /** Of a name with several providers, the one that sent last. Null for what was never heard of. */
  function device(name: string): DeviceView | null {
    const [last] = records.find(name).toSorted((a, b) => (b.lastSeen ?? 0) - (a.lastSeen ?? 0))
    const named = refusedByName(clients()?.withRefusals() ?? [])
    if (last !== undefined) return seen(last, named)
    const listed = neverSeen(name, named)
    if (listed !== null) return listed
    const client = clients()?.find(name) ?? clients()?.findAddress(name) ?? null
    return client === null ? null : clientAlone(client)
  }

  /** Those that were seen, those that are listed and were not, and clients that were refused. */
  function* all(mapping: Mapping): Generator<DeviceView> {
    const named = refusedByName(clients()?.withRefusals() ?? [])
    const owned = new Set<string>()
    for (const record of records.views()) {
      const view = seen(record, named)
      if (view.client !== null) owned.add(view.client.clientId)
      yield view
    }
    for (const name of mapping.listed()) {
      if (records.isKnown(name)) continue
      const view = neverSeen(name, named)
      if (view === null) continue
      if (view.client !== null) owned.add(view.client.clientId)
      yield view
    }
    for (const client of clients()?.withRefusals() ?? []) {
      const { clientId } = client
      if (!isRefused(client, null) || owned.has(clientId) || isDevice(clientId, mapping)) continue
      yield clientAlone(client)
    }
  }

  /** It is in the list by itself, perhaps with another client. */
  function isDevice(name: string, mapping: Mapping): boolean {
    return name !== '' && (records.isKnown(name) || mapping.rowOf(name) !== undefined)
  }

  function seen(record: DeviceRecordView, named: ReadonlyMap<string, ClientView>): DeviceView {
    const { device, provider, position, accepted, refused, losses } = record
    const row = active().mapping.rowOf(device)
    const client = clientFor(record, named, clients())
    const skewMs = active().mapper.deviceClock(device)?.skewMs ?? record.skewMs
    return {
      device,
      kind: 'device',
      provider,
      assetId: row?.asset_id ?? null,
      listed: row !== undefined,
      ...stateOf({ record, client, now: clock.now() }),
      messages: record.messages,
      messagesPerHour: record.messagesPerHour,
      medianGapMs: record.medianGapMs,
      firstSeen: isoTimeOrNull(record.firstSeen),
      lastSeen: isoTimeOrNull(record.lastSeen),
      silentSince: isoTimeOrNull(record.silentSince),
      skewMs,
      client: client && clientOf(client),
      position: position && {
        latitude: position.latitude,
        longitude: position.longitude,
        at: isoTime(position.at),
        arrivedAt: isoTime(position.arrivedAt),
        fixed: position.isFixed,
      },
      lastAccepted: accepted && { ...accepted, at: isoTime(accepted.at) },
      lastRefused: refused && { ...refused, at: isoTime(refused.at) },
      duplicates: record.duplicates,
      ignored: countOf(losses, 'ignored'),
      deadLetters: countOf(losses, 'dead'),
      quarantined: countOf(losses, 'quarantined'),
      reasons: losses.map((loss) => ({
        ...loss,
        firstAt: isoTime(loss.firstAt),
        lastAt: isoTime(loss.lastAt),
      })),
      withheld: record.withheld,
    }
  }

  /** Null where the device table does not have it. */
  function neverSeen(device: string, named: ReadonlyMap<string, ClientView>): DeviceView | null {
    const row = active().mapping.rowOf(device)
    if (row === undefined) return null
    const client = clientFor({ device, sender: null, lastSeen: null }, named, clients())
    return {
      ...nothingSent,
      device,
      kind: 'device',
      provider: row.provider ?? 'default',
      assetId: row.asset_id ?? null,
      listed: true,
      ...stateOf({ record: null, client, now: clock.now() }),
      client: client && clientOf(client),
    }
  }

  /** No device is known by its name. */
  function clientAlone(client: ClientView): DeviceView {
    return {
      ...nothingSent,
      device: client.clientId === '' ? (client.address ?? '') : client.clientId,
      kind: client.clientId === '' ? 'address' : 'client',
      provider: null,
      assetId: null,
      listed: false,
      ...stateOfClient(client, clock.now()),
      client: clientOf(client),
    }
  }
}

/** Refused clients by the user name that they gave; the last one of a name counts. */
export function refusedByName(refused: Iterable<ClientView>): ReadonlyMap<string, ClientView> {
  const named = new Map<string, ClientView>()
  for (const client of refused) {
    const name = client.userName ?? client.identity
    if (name === null || !isRefused(client, null)) continue
    const other = named.get(name)
    if (other === undefined || other.since < client.since) named.set(name, client)
  }
  return named
}

/** The client that sent the last message, unless one that seems to be the device was refused since. */
export function clientFor(
  { device: name, sender, lastSeen }: Pick<DeviceRecordView, 'device' | 'sender' | 'lastSeen'>,
  named: ReadonlyMap<string, ClientView>,
  clients: Pick<FoundClients, 'find'> | null,
): ClientView | null {
  const last = clients?.find(sender?.clientId ?? name) ?? null
  const other = named.get(name) ?? null
  if (last === null || (other !== null && last.state !== 'connected' && isRefused(other, lastSeen)))
    return other ?? last
  return last
}

const nothingSent = {
  messages: 0,
  messagesPerHour: 0,
  medianGapMs: null,
  firstSeen: null,
  lastSeen: null,
  silentSince: null,
  skewMs: null,
  position: null,
  lastAccepted: null,
  lastRefused: null,
  duplicates: 0,
  ignored: 0,
  deadLetters: 0,
  quarantined: 0,
  reasons: [],
  withheld: [],
} as const

export function clientOf(client: ClientView): DeviceClient {
  const { since, refusedAt, messageRefusedAt, fault } = client
  return {
    ...client,
    since: isoTime(since),
    refusedAt: isoTimeOrNull(refusedAt),
    messageRefusedAt: isoTimeOrNull(messageRefusedAt),
    fault: fault && { ...fault, at: isoTime(fault.at) },
  }
}

function countOf(losses: readonly Loss[], kind: Loss['kind']): number {
  return losses.reduce((sum, loss) => sum + (loss.kind === kind ? loss.count : 0), 0)
}
