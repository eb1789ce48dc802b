// device-views.ts: one device as a person asks for it: its record, its row of the device table, its client,
// and what the mapping in force says. Its state is the first of these that holds:
//
//   refused      the gateway refused a CONNECT of its client after the last message
//   silent       its last message is longer ago than its rhythm lets expect
//   never_sent   it is in the device table, and no message is known
//   not_mapped   its last message gave no payload
//   sending

import { isoTime, isoTimeOrNull, type Clock, type EpochMs } from '../std/clock.ts'
import { formatDuration } from '../std/quantity.ts'
import type { DeviceRecords, DeviceRecordView, Loss } from '../device-records/device-records.ts'
import type { ClientView, Ingest } from '../ingest/ingest.ts'
import type { Mapper, Mapping } from '../mapping/mapping.ts'
import type { DeviceClient, DeviceView } from '../ops/ops.ts'

export type ViewDeps = {
  clock: Clock
  active: () => { mapper: Mapper; mapping: Mapping }
  records: Pick<DeviceRecords, 'find' | 'views'>
  clients: () => Pick<Ingest['clients'], 'find'> | null
}

type Found = { record: DeviceRecordView | null; client: ClientView | null; now: EpochMs }

export function createDeviceViews({ clock, active, records, clients }: ViewDeps) {
  return { device, all }

  /** Of a name with several providers, the one that sent last. Null for a device that is not known. */
  function device(name: string): DeviceView | null {
    const [last] = records.find(name).toSorted((a, b) => (b.lastSeen ?? 0) - (a.lastSeen ?? 0))
    return last === undefined ? neverSeen(name) : seen(last)
  }

  /** Those that were seen, then those that are listed and were not. */
  function* all(mapping: Mapping): Generator<DeviceView> {
    for (const record of records.views()) yield seen(record)
    for (const name of mapping.listed()) {
      if (records.find(name).length > 0) continue
      const view = neverSeen(name)
      if (view !== null) yield view
    }
  }

  function seen(record: DeviceRecordView): DeviceView {
    const { device, provider, sender, position, accepted, refused, losses } = record
    const row = active().mapping.rowOf(device)
    const client = clients()?.find(sender?.clientId ?? device) ?? null
    const skewMs = active().mapper.deviceClock(device)?.skewMs ?? record.skewMs
    return {
      device,
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
  function neverSeen(device: string): DeviceView | null {
    const row = active().mapping.rowOf(device)
    if (row === undefined) return null
    const client = clients()?.find(device) ?? null
    return {
      device,
      provider: row.provider ?? 'default',
      assetId: row.asset_id ?? null,
      listed: true,
      ...stateOf({ record: null, client, now: clock.now() }),
      messages: 0,
      messagesPerHour: 0,
      medianGapMs: null,
      firstSeen: null,
      lastSeen: null,
      silentSince: null,
      skewMs: null,
      client: client && clientOf(client),
      position: null,
      lastAccepted: null,
      lastRefused: null,
      duplicates: 0,
      ignored: 0,
      deadLetters: 0,
      quarantined: 0,
      reasons: [],
      withheld: [],
    }
  }
}

export function clientOf(client: ClientView): DeviceClient {
  const { since, fault } = client
  return { ...client, since: isoTime(since), fault: fault && { ...fault, at: isoTime(fault.at) } }
}

function countOf(losses: readonly Loss[], kind: Loss['kind']): number {
  return losses.reduce((sum, loss) => sum + (loss.kind === kind ? loss.count : 0), 0)
}

function stateOf(found: Found): Pick<DeviceView, 'state' | 'since' | 'why'> {
  const { record, client, now } = found
  const lastAt = record?.lastSeen ?? null
  const refusal = client?.state === 'refused' ? client.fault : null
  if (refusal !== null && (lastAt === null || refusal.at > lastAt))
    return {
      state: 'refused',
      since: isoTime(refusal.at),
      why: `Its last CONNECT was refused ${agoOf(refusal.at, now)}. ${refusal.detail}`,
    }
  if (record === null || lastAt === null)
    return {
      state: 'never_sent',
      since: null,
      why: `The device table has it, and no message of it has come. ${connectionText(client, now)}`,
    }
  if (record.silentSince !== null)
    return {
      state: 'silent',
      since: isoTime(record.silentSince),
      why: `${rhythmText(record, now)} ${connectionText(client, now)}${lossText(lastLoss(record))}`,
    }
  const loss = lastLoss(record)
  if (loss !== null)
    return {
      state: 'not_mapped',
      since: isoTime(Math.max(loss.firstAt, record.lastMappedAt ?? 0)),
      why: lossText(loss).trim(),
    }
  return { state: 'sending', since: isoTimeOrNull(record.firstSeen), why: null }
}

/** What the last message became, where it gave no payload. */
function lastLoss({ losses, lastSeen, lastMappedAt }: DeviceRecordView): Loss | null {
  const last = losses.findLast(({ lastAt }) => lastSeen !== null && lastAt >= lastSeen)
  if (last === undefined) return null
  // Of a list some records may give payloads.
  return last.lastAt > (lastMappedAt ?? 0) ? last : null
}

function rhythmText({ lastSeen, medianGapMs }: DeviceRecordView, now: EpochMs): string {
  const last = `No message for ${formatDuration(Math.max(0, now - (lastSeen ?? now)))}.`
  if (medianGapMs === null) return last
  const usual = medianGapMs < 1000 ? 'every second' : `every ${formatDuration(medianGapMs)}`
  return `${last.slice(0, -1)}, before one ${usual}.`
}

function connectionText(client: ClientView | null, now: EpochMs): string {
  if (client === null) return 'It is not connected.'
  const ago = agoOf(client.since, now)
  switch (client.state) {
    case 'connected':
      return `It has been connected for ${formatDuration(Math.max(0, now - client.since))}.`
    case 'lost':
      return `Its connection was lost ${ago}${client.willCame ? ' (will)' : ''}.`
    case 'disconnected':
      return `It disconnected ${ago}.`
    case 'refused':
    default:
      return `Its client was refused ${ago}.`
  }
}

const becameTexts = {
  ignored: 'was ignored',
  dead: 'became a dead letter',
  quarantined: 'was quarantined',
} as const

function lossText(loss: Loss | null): string {
  if (loss === null) return ''
  const { kind, reason, count } = loss
  const times = count === 1 ? '' : ` (${count} times)`
  return ` Its last message ${becameTexts[kind]}: ${reason}${times}.`
}

function agoOf(at: EpochMs, now: EpochMs): string {
  return `${formatDuration(Math.max(0, now - at))} ago`
}
