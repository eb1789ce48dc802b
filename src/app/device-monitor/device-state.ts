// device-state.ts: the state of a device in one word and in a sentence. It is the first of these that holds:
//
//   refused      its CONNECT was refused after its last message, or a rule refuses what it sends
//   never_sent   it is in the device table, and no message is known
//   silent       its last message is longer ago than its rhythm lets expect
//   repeating    its last messages bring nothing new: each is a duplicate
//   not_mapped   its last message gave no payload
//   sending

import { isoTime, isoTimeOrNull, type EpochMs } from '../../std/clock.ts'
import { formatDuration } from '../../std/quantity.ts'
import {
  lastLossOf,
  type DeviceRecordView,
  type Loss,
  type Repeating,
} from '../../device-records/device-records.ts'
import type { ClientView } from '../../ingest/ingest.ts'
import type { DeviceView } from '../../ops/ops.ts'

type Found = { record: DeviceRecordView | null; client: ClientView | null; now: EpochMs }

export function stateOf(found: Found): Pick<DeviceView, 'state' | 'since' | 'why'> {
  const { record, client, now } = found
  const lastAt = record?.lastSeen ?? null
  if (client !== null && isRefused(client, lastAt))
    return {
      state: 'refused',
      since: isoTime(client.refusedAt ?? client.messageRefusedAt ?? client.since),
      why: refusalText(client, now),
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
      why: `${rhythmText(record, now)} ${connectionText(client, now)}${lossText(lastLossOf(record))}`,
    }
  const { repeating } = record
  if (repeating !== null)
    return {
      state: 'repeating',
      since: isoTime(repeating.newAt ?? repeating.from),
      why: repeatingText(repeating, now),
    }
  const loss = lastLossOf(record)
  if (loss !== null)
    return {
      state: 'not_mapped',
      since: isoTime(Math.max(loss.firstAt, record.lastMappedAt ?? 0)),
      why: lossText(loss).trim(),
    }
  return { state: 'sending', since: isoTimeOrNull(record.firstSeen), why: null }
}

/** Of a client whose id is the name of no device. */
export function stateOfClient(client: ClientView, now: EpochMs): Pick<DeviceView, 'state' | 'since' | 'why'> {
  if (isRefused(client, null)) return stateOf({ record: null, client, now })
  const whose =
    'No device has this name, and a client has. Its messages may be those of devices with other names.'
  return { state: 'never_sent', since: null, why: `${whose} ${connectionText(client, now)}` }
}

/** Its CONNECT was refused after the last message, or a rule refuses all that it sends. */
export function isRefused(
  { state, refusedAt, messageRefusedAt }: ClientView,
  lastSeen: EpochMs | null,
): boolean {
  const at = state !== 'connected' && refusedAt !== null ? refusedAt : messageRefusedAt
  return at !== null && at > (lastSeen ?? 0)
}

function refusalText(client: ClientView, now: EpochMs): string {
  const { state, refusedAt, messageRefusedAt, fault, address } = client
  const detail = fault?.detail ?? ''
  const from = address === null ? '' : ` from ${address}`
  if (state !== 'connected' && refusedAt !== null)
    return `It was refused${from}, the last time ${agoOf(refusedAt, now)}. ${detail}`
  return `A rule refuses its messages, the last time ${agoOf(messageRefusedAt ?? now, now)}. ${detail}`
}

function repeatingText({ messages, newAt, from, isOneMessage }: Repeating, now: EpochMs): string {
  const what = isOneMessage ? 'its last message' : 'earlier messages'
  const last =
    newAt === null
      ? `No new one came in the ${formatDuration(Math.max(0, now - from))} since ${isoTime(from)}.`
      : `The last new one came at ${isoTime(newAt)}, ${agoOf(newAt, now)}.`
  return `It repeats ${what} (${messages} times). ${last}`
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
      // MQTT 5, 3.14.2.1: DISCONNECT 0x04 asks for the will.
      return `It disconnected ${ago}${client.willCame ? ' (will)' : ''}.`
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
