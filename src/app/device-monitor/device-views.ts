// device-views.ts: one device as a person asks for it: its record, its row of the device table, its client,
// and what the mapping in force says (device-state-text.ts).
//
// A client that was refused, whose messages name no device, or that sends nothing, may be a device of which
// no message ever came. It belongs to the device that has its client id, or its user name, as its key or
// asset; else it is in the list under its client id, or under its address where its CONNECT was never read.
//
// Asked for by a name, the first of these is found: the device with this key, the client with this id, the
// address, the device that has this asset, the client with this user name, the user.

import type { OurTime } from '../../domain/arrival.ts'
import type { DeviceState } from '../../domain/device-state.ts'
import { isoTime, isoTimeOrNull, type EpochMs } from '../../std/clock.ts'
import { parseDateArgument } from '../../std/time-argument.ts'
import { isoTimes } from '../../std/iso-times.ts'
import type { DeviceRecords, DeviceRecordView, Loss, Standing } from '../../device-records/device-records.ts'
import type { ClientView, Ingest } from '../../ingest/ingest.ts'
import type { Mapper, Mapping } from '../../mapping/mapping.ts'
import type { DeviceView } from '../../ops/ops.ts'
import {
  deviceState,
  isRefused,
  isShownAlone,
  stateOf,
  stateOfClient,
  stateOfSender,
  stateOfUser,
} from './device-state-text.ts'

export type FoundClients = Pick<
  Ingest['clients'],
  'find' | 'findAddress' | 'findUser' | 'isUser' | 'waitOf' | 'withoutDevice'
> & { isClosed: (from: string) => boolean }

export type ViewDeps = {
  ourTime: Pick<OurTime, 'now'>
  /** `topics`: those of the broker that sources take. */
  active: () => { mapper: Mapper; mapping: Mapping; topics: () => readonly string[] }
  records: Pick<DeviceRecords, 'find' | 'isKnown' | 'views'>
  clients: () => FoundClients | null
}

type DeviceRow = NonNullable<ReturnType<Mapping['rowOf']>>

/** `device`: null for a client of no device. `mutedUntil`: by a person or the table, perhaps past. */
export type Classified<Of extends Standing = Standing> = {
  device: string | null
  record: Of | null
  row: DeviceRow | undefined
  client: ClientView | null
  mutedUntil: EpochMs | null
  state: DeviceState
}

export function createDeviceViews({ ourTime, active, records, clients }: ViewDeps) {
  return { device, all, classified }

  /** Of a name with several providers, the one that sent last. Null for what was never heard of. */
  function device(name: string): DeviceView | null {
    const named = clientsByName(clients()?.withoutDevice() ?? [])
    const found = deviceNamed(name, named)
    if (found !== null) return found
    const client = clients()?.find(name) ?? clients()?.findAddress(name) ?? null
    if (client !== null) return clientNamed(client, named)
    const ofAsset = deviceOfAsset(name, named)
    if (ofAsset !== null) return ofAsset
    const user = clients()?.findUser(name) ?? null
    if (user !== null) return deviceNamed(user.clientId, named) ?? clientNamed(user, named)
    return clients()?.isUser(name) === true ? userAlone(name) : null
  }

  function deviceNamed(name: string, named: ReadonlyMap<string, ClientView>): DeviceView | null {
    const [last] = records.find(name).toSorted((a, b) => (b.lastSeen ?? 0) - (a.lastSeen ?? 0))
    if (last !== undefined) return seen(last, clientFor(last, named, clients()))
    const row = active().mapping.rowOf(name)
    return row === undefined ? null : neverSeen(name, row, clientFor(unseen(name, row), named, clients()))
  }

  /** Of several devices of one asset, the one that sent last. */
  function deviceOfAsset(assetId: string, named: ReadonlyMap<string, ClientView>): DeviceView | null {
    const { mapping } = active()
    let found: DeviceView | null = null
    for (const name of mapping.listed()) {
      if (mapping.rowOf(name)?.asset_id !== assetId) continue
      const view = deviceNamed(name, named)
      if (view !== null && (found === null || (view.lastSeen ?? '') > (found.lastSeen ?? ''))) found = view
    }
    return found
  }

  /** The device whose last message it sent, where it is one; else the client. */
  function clientNamed(client: ClientView, named: ReadonlyMap<string, ClientView>): DeviceView {
    const sent: DeviceRecordView[] = []
    for (const record of records.views()) if (record.sender?.clientId === client.clientId) sent.push(record)
    const [only] = sent
    if (only !== undefined && sent.length === 1) return seen(only, clientFor(only, named, clients()))
    const state =
      sent.length === 0
        ? {}
        : stateOfSender(
            client,
            sent.map(({ device }) => device),
          )
    return { ...clientAlone(client), ...state }
  }

  /** What `classified` gives, for the list. */
  function* all(mapping: Mapping): Generator<DeviceView> {
    for (const found of classified(records.views(), mapping)) yield viewOf(found)
  }

  /**
   * Each with its state: those of `known`, those that are listed and have no record, and clients that are
   * those of no device.
   */
  function* classified<Of extends Standing>(
    known: Iterable<Of>,
    mapping: Mapping,
  ): Generator<Classified<Of>> {
    const named = clientsByName(clients()?.withoutDevice() ?? [])
    const owned = new Set<string>()
    for (const record of known) {
      const { device } = record
      const client = clientFor(record, named, clients())
      if (client !== null) owned.add(client.clientId)
      yield found({ device, record, client, row: mapping.rowOf(device) })
    }
    for (const device of mapping.listed()) {
      const row = mapping.rowOf(device)
      if (row === undefined || records.isKnown(device)) continue
      const client = clientFor(unseen(device, row), named, clients())
      if (client !== null) owned.add(client.clientId)
      yield found<Of>({ device, record: null, client, row })
    }
    for (const client of clients()?.withoutDevice() ?? []) {
      const { clientId } = client
      if (!isShownAlone(client) || owned.has(clientId) || isDevice(clientId, mapping)) continue
      yield found<Of>({ device: null, record: null, client, row: undefined })
    }
  }

  function found<Of extends Standing>(of: Omit<Classified<Of>, 'state' | 'mutedUntil'>): Classified<Of> {
    const { record, client, row } = of
    const now = ourTime.now()
    const until = mutedUntil(record?.mutedUntil ?? null, row)
    const isMuted = until !== null && until > now
    return {
      ...of,
      mutedUntil: until,
      state: deviceState(record, client, { isMuted, isWaiting: waitOf(client) !== null, now }),
    }
  }

  function viewOf({ device, record, client, row }: Classified<DeviceRecordView>): DeviceView {
    if (record !== null) return seen(record, client)
    return device === null ? clientAlone(client!) : neverSeen(device, row!, client)
  }

  /** It is in the list by itself, perhaps with another client. */
  function isDevice(name: string, mapping: Mapping): boolean {
    return name !== '' && (records.isKnown(name) || mapping.rowOf(name) !== undefined)
  }

  function seen(record: DeviceRecordView, client: ClientView | null): DeviceView {
    const { device, provider, source, position, accepted, refused, losses } = record
    const row = active().mapping.rowOf(device)
    const muted = mutedOf(record.mutedUntil, row)
    const skewMs = active().mapper.deviceClock(device)?.skewMs ?? record.skewMs
    return {
      device,
      kind: 'device',
      provider,
      source,
      assetId: row?.asset_id ?? null,
      listed: row !== undefined,
      ...stateOf({ record, ...knownOf(client), ...muted }),
      messages: record.messages,
      messagesPerHour: record.messagesPerHour,
      medianGapMs: record.medianGapMs,
      firstSeen: isoTimeOrNull(record.firstSeen),
      lastSeen: isoTimeOrNull(record.lastSeen),
      silentSince: isoTimeOrNull(record.silentSince),
      ...muted,
      skewMs,
      client: client && isoTimes(client),
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
      withheld: [...record.withheld],
    }
  }

  function mutedOf(byPerson: EpochMs | null, row: DeviceRow | undefined) {
    const until = mutedUntil(byPerson, row)
    if (until === null || until <= ourTime.now()) return { mutedUntil: null, mutedBy: null }
    return { mutedUntil: isoTime(until), mutedBy: until === byPerson ? 'person' : 'table' } as const
  }

  function neverSeen(device: string, row: DeviceRow, client: ClientView | null): DeviceView {
    return {
      ...nothingSent,
      device,
      kind: 'device',
      provider: row.provider ?? 'default',
      assetId: row.asset_id ?? null,
      listed: true,
      ...mutedOf(null, row),
      ...stateOf({ record: null, ...knownOf(client) }),
      client: client && isoTimes(client),
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
      ...stateOfClient({ ...knownOf(client), client }),
      client: isoTimes(client),
    }
  }

  function userAlone(name: string): DeviceView {
    const none = { provider: null, assetId: null, listed: false, client: null }
    return { ...nothingSent, device: name, kind: 'user', ...none, ...stateOfUser() }
  }

  function waitOf(client: ClientView | null) {
    return client?.state === 'connected' ? (clients()?.waitOf(client) ?? null) : null
  }

  function knownOf(client: ClientView | null) {
    const isClosed = (from: string) => clients()?.isClosed(from) ?? false
    return { client, wait: waitOf(client), isClosed, topics: topicsFor(client), now: ourTime.now() }
  }

  /** Most clients need none. */
  function topicsFor(client: ClientView | null): readonly string[] {
    return (client?.unnamed ?? null) === null ? [] : active().topics()
  }
}

/** A person says it with `devices mute`, or in the device table; the later one counts. */
function mutedUntil(byPerson: EpochMs | null, row: DeviceRow | undefined): EpochMs | null {
  const byTable = row?.muted_until === undefined ? null : parseDateArgument(row.muted_until)
  return byTable === null || (byPerson ?? 0) >= byTable ? byPerson : byTable
}

/** By the user name that they gave; the last one of a name counts. */
function clientsByName(found: Iterable<ClientView>): ReadonlyMap<string, ClientView> {
  const named = new Map<string, ClientView>()
  for (const client of found) {
    const name = client.userName ?? client.identity
    if (name === null || !isShownAlone(client)) continue
    const other = named.get(name)
    if (other === undefined || other.since < client.since) named.set(name, client)
  }
  return named
}

type ClientOwner = Pick<DeviceRecordView, 'device' | 'sender' | 'lastSeen'> & {
  /** Of a device that never sent. */
  assetId?: string | null
}

/** The client of the last message, unless one that seems to be the device was refused or connected since. */
function clientFor(
  { device: name, assetId = null, sender, lastSeen }: ClientOwner,
  named: ReadonlyMap<string, ClientView>,
  clients: Pick<FoundClients, 'find'> | null,
): ClientView | null {
  const asset = lastSeen === null ? assetId : null
  const last =
    clients?.find(sender?.clientId ?? name, sender?.identity) ??
    (asset === null ? null : clients?.find(asset)) ??
    null
  const other = named.get(name) ?? (asset === null ? null : named.get(asset)) ?? null
  if (last === null || other === null) return other ?? last
  const isLater = other.state === 'connected' || isRefused(other, lastSeen)
  return last.state !== 'connected' && isLater ? other : last
}

function unseen(device: string, row: DeviceRow): ClientOwner {
  return { device, assetId: row.asset_id ?? null, sender: null, lastSeen: null }
}

const nothingSent = {
  source: null,
  messages: 0,
  messagesPerHour: 0,
  medianGapMs: null,
  firstSeen: null,
  lastSeen: null,
  silentSince: null,
  mutedUntil: null,
  mutedBy: null,
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
} satisfies Partial<DeviceView>

function countOf(losses: readonly Loss[], kind: Loss['kind']): number {
  return losses.reduce((sum, loss) => sum + (loss.kind === kind ? loss.count : 0), 0)
}
