// device-state-text.ts: the state of a device (domain/device-state.ts), since when, and why in a sentence.

import { isoTime, isoTimeOrNull, zonedTime, type EpochMs } from '../../std/clock.ts'
import { formatAgo, formatDuration, plural } from '../../std/quantity.ts'
import { assertNever } from '../../std/assert.ts'
import { bounded, quote } from '../../std/quote.ts'
import { keptStores } from '../../domain/kept-store.ts'
import { deviceStateOf, type DeviceState } from '../../domain/device-state.ts'
import type { DeviceRecordView, Loss, Repeating, Standing } from '../../device-records/device-records.ts'
import { isShared, type ClientView, type StoreWait } from '../../ingest/ingest.ts'
import type { DeviceView } from '../../ops/ops.ts'

/** `topics`: those that sources take, for messages that none took. */
type Known = {
  client: ClientView | null
  wait: StoreWait | null
  /** Whether nothing can come now by this message source. */
  isClosed: (from: string) => boolean
  topics: readonly string[]
  now: EpochMs
}
/** `mutedUntil`: as the answer has it; null where its silence counts. */
type Found = Known & { record: DeviceRecordView | null } & Partial<Pick<DeviceView, 'mutedUntil' | 'mutedBy'>>
type State = Pick<DeviceView, 'state' | 'since' | 'why'>

const topicsShown = 5
const devicesShown = 5
const topicLengthMax = 120

/** The only classification: of a device with or without a record, and of a client of no device. */
export function deviceState(
  record: Standing | null,
  client: ClientView | null,
  { isMuted, isWaiting, now }: { isMuted: boolean; isWaiting: boolean; now: EpochMs },
): DeviceState {
  const isRefusedNow = client !== null && isRefused(client, record?.lastSeen ?? null)
  if (record !== null && record.lastSeen !== null)
    return deviceStateOf({
      ...record,
      isRefused: isRefusedNow,
      isWaiting,
      isMuted,
      isLost: record.loss !== null,
      isIdShared: client !== null && isShared(client, now),
    })
  if (isRefusedNow) return 'refused'
  if (isWaiting) return 'waiting'
  return (client?.unnamed ?? null) === null ? 'never_sent' : 'not_mapped'
}

export function stateOf({ record, mutedUntil = null, mutedBy = null, ...known }: Found): State {
  const { client, wait, now } = known
  const lastAt = record?.lastSeen ?? null
  const state = deviceState(record, client, {
    isMuted: mutedUntil !== null,
    isWaiting: wait !== null,
    now,
  })
  if (state === 'refused') return refusedState(client!, lastAt, now)
  if (state === 'waiting') return waitingState(wait!)
  if (record === null || lastAt === null)
    return withoutRecord('The device table has it, and no message of it has come.', known)
  const { loss } = record
  const of = (since: EpochMs | null, why: string | null): State => ({
    state,
    since: isoTimeOrNull(since),
    why,
  })
  switch (state) {
    case 'silent':
    case 'muted':
      return of(
        record.silentSince,
        mutedText(mutedUntil, mutedBy) +
          `${rhythmText(record, now)} ${wayText(record.from, known)}${faultSince(lastAt, client, now)}` +
          `${lossText(loss)}${unnamedSince(lastAt, known)}`,
      )
    case 'repeating':
      return of(record.repeating!.newAt ?? record.repeating!.from, repeatingText(record.repeating!, now))
    case 'not_mapped':
      return of(Math.max(loss!.firstAt, record.lastMappedAt ?? 0), lossText(loss).trim())
    case 'not_accepted':
      return of(record.accepted?.at ?? record.firstSeen, refusalOfService(record, now))
    case 'id_shared':
      return sharedState(client!)
    case 'clock_wrong':
      return of(null, clockText(record.skewMs ?? 0))
    case 'no_position':
      return of(
        record.position?.arrivedAt ?? record.firstSeen,
        `It sends other values, and ${record.position === null ? 'has sent' : 'sends'} no position that can be used` +
          `${record.position === null ? '' : ' any more'}. \`devices show KEY --explain\` says why.`,
      )
    case 'never_sent':
    case 'sending':
      return of(record.firstSeen, null)
    default:
      return assertNever(state)
  }
}

/** It may send more, and the gateway does not read it, or holds what it reads. */
function waitingState({ store, since }: StoreWait): State {
  const why =
    `Its messages wait without an acknowledgement: the store of ${keptStores[store]} is full. ` +
    'They are taken as soon as there is room.'
  return { state: 'waiting', since: isoTime(since), why }
}

/** The first refusal since the last message. */
function refusedState(client: ClientView, lastSeen: EpochMs | null, now: EpochMs): State {
  const { state, refusedFirstAt, refusedAt, messageRefusedFirstAt, messageRefusedAt, since } = client
  const isByConnect = state !== 'connected' && refusedAt !== null
  const from = isByConnect ? (refusedFirstAt ?? refusedAt) : (messageRefusedFirstAt ?? messageRefusedAt)
  return {
    state: 'refused',
    since: isoTime(Math.max(from ?? since, lastSeen ?? 0)),
    why: refusalText(client, now),
  }
}

function refusalOfService({ accepted, refused }: DeviceRecordView, now: EpochMs): string {
  const since =
    accepted === null
      ? 'never accepted anything of it'
      : `accepted nothing of it since ${zonedTime(accepted.at)}`
  const { reason, detail, requestId, at } = refused!
  const why = [reason ?? 'no reason', ...(detail === null ? [] : [detail])].join(': ')
  return `The service ${since}. Its last answer, ${agoOf(at, now)}: ${bounded(why)} (requestId ${requestId ?? 'none'}).`
}

function sharedState(client: ClientView): State {
  const { clientId, takeOvers, sharedAt, sharedFirstAt } = client
  const id = quote(clientId, 64)
  return {
    state: 'id_shared',
    since: isoTimeOrNull(sharedFirstAt ?? sharedAt),
    why: `Another client uses its client id ${id}, too: they closed the connections of each other ${takeOvers} times.`,
  }
}

function clockText(skewMs: number): string {
  return `Its clock is ${formatDuration(Math.abs(skewMs))} ${skewMs > 0 ? 'behind' : 'ahead'}.`
}

/** Of a client whose id is the name of no device. */
export function stateOfClient(known: Known & { client: ClientView }): State {
  if (isRefused(known.client, null) || known.wait !== null) return stateOf({ record: null, ...known })
  return withoutRecord('No device has this name, and a client has.', known)
}

/** Of a client that sent the last messages of several devices. */
export function stateOfSender({ state, since }: ClientView, devices: readonly string[]): State {
  const shown = devices.slice(0, devicesShown).map((device) => quote(device, 64))
  const more = devices.length > devicesShown ? ` and ${devices.length - devicesShown} more` : ''
  const why = `No device has this name. A client has, and the last messages of ${shown.join(', ')}${more} came from it.`
  return { state: state === 'connected' ? 'sending' : 'silent', since: isoTime(since), why }
}

/** Of a user of the broker with whose name no client has connected, and no device is known. */
export function stateOfUser(): State {
  const why = 'No device has this name, and a user of the broker has. No client has connected as this user.'
  return { state: 'never_sent', since: null, why }
}

function withoutRecord(what: string, known: Known): State {
  const { client } = known
  const why = [what, ...clientTexts(known)].join(' ')
  if (client === null || client.unnamed === null) return { state: 'never_sent', since: null, why }
  return { state: 'not_mapped', since: isoTime(client.unnamed.firstAt), why }
}

/** Whether a client is in the list by itself, where it is the client of no device. */
export function isShownAlone(client: ClientView): boolean {
  const { state, traffic, unnamed } = client
  return isRefused(client, null) || unnamed !== null || (state === 'connected' && traffic.messages === 0)
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
      ? `No new one came in the ${formatDuration(Math.max(0, now - from))} since ${zonedTime(from)}.`
      : `The last new one came at ${zonedTime(newAt)}, ${agoOf(newAt, now)}.`
  return `It repeats ${what} (${messages} times). ${last}`
}

function rhythmText({ lastSeen, medianGapMs }: DeviceRecordView, now: EpochMs): string {
  const last = `No message for ${formatDuration(Math.max(0, now - (lastSeen ?? now)))}.`
  if (medianGapMs === null) return last
  const usual = medianGapMs < 1000 ? 'every second' : `every ${formatDuration(medianGapMs)}`
  return `${last.slice(0, -1)}, before one ${usual}.`
}

/** A device of a bridge never connects here. */
function wayText(from: string | null, { client, isClosed, now }: Known): string {
  if (client !== null || from === null) return connectionText(client, now)
  const name = quote(from, 64)
  return isClosed(from) ? `Its bridge ${name} is not connected.` : `It sends by the bridge ${name}.`
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

/** Its connection, and what it sent. */
function clientTexts({ client, topics, now }: Known): readonly string[] {
  if (client === null) return ['It is not connected.']
  const { clientId, userName, address, state, since, traffic, unnamed } = client
  const user = userName === null ? '' : `, user ${quote(userName, 64)}`
  const from = address === null ? '' : `, from ${address}`
  const connection =
    state === 'connected'
      ? `It connected as client ${quote(clientId, 64)}${user}${from}, at ${zonedTime(since)}, ${agoOf(since, now)}.`
      : `${connectionText(client, now).slice(0, -1)}: client ${quote(clientId, 64)}${user}${from}.`
  if (unnamed !== null) return [connection, unnamedText(unnamed, { topics, now })]
  const { messages, subscriptions } = traffic
  if (messages > 0)
    return [connection, `It sent ${plural(messages, 'message')}: they name other devices, or wait.`]
  if (subscriptions === 0) return [connection, `It sent no message.${faultSince(0, client, now)}`]
  const filters = `It sent no message, and subscribed to ${plural(subscriptions, 'topic filter')}`
  return [connection, `${filters}. The gateway publishes nothing there.`]
}

function mutedText(until: string | null, by: DeviceView['mutedBy']): string {
  if (until === null) return ''
  return `Its silence is muted until ${zonedTime(until)}, by ${by === 'table' ? 'the device table' : '`devices mute`'}. `
}

/** What the gateway found after its last message, such as a packet that is too large. */
function faultSince(lastAt: EpochMs, client: ClientView | null, now: EpochMs): string {
  const fault = client?.fault ?? null
  if (fault === null || fault.at <= lastAt) return ''
  return ` The gateway refused it ${agoOf(fault.at, now)} (${fault.reason}): ${bounded(fault.detail)}`
}

/** After the last message that was mapped. */
function unnamedSince(lastAt: EpochMs, { client, topics, now }: Known): string {
  const unnamed = client?.unnamed ?? null
  return unnamed === null || unnamed.at <= lastAt ? '' : ` ${unnamedText(unnamed, { topics, now })}`
}

function unnamedText(
  { count, at, topic, source, became, reason, detail }: NonNullable<ClientView['unnamed']>,
  { topics, now }: Pick<Known, 'topics' | 'now'>,
): string {
  const last = `${count === 1 ? '' : 'the last one '}on ${quote(topic, topicLengthMax)} ${agoOf(at, now)}`
  const sent = `It sent ${plural(count, 'message')} that ${count === 1 ? 'names' : 'name'} no device, ${last}.`
  if (source === null || reason === 'NO_SOURCE')
    return `${sent} No source takes this topic, so the message ${becameTexts[became]} (${reason}). ${takenText(topics)}`
  const why = detail === '' ? reason : `${reason}: ${bounded(detail)}`
  const end = /[.?!…]$/.test(why) ? '' : '.'
  const of = source === '' ? '' : ` of source ${quote(source, 64)}`
  return `${sent} The message${of} ${becameTexts[became]}: ${why}${end}`
}

function takenText(topics: readonly string[]): string {
  if (topics.length === 0) return 'No source takes messages of the broker.'
  const shown = topics.slice(0, topicsShown).map((topic) => quote(topic, topicLengthMax))
  const more = topics.length > topicsShown ? ` and ${topics.length - topicsShown} more` : ''
  return `Sources take ${shown.join(', ')}${more}.`
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
  return formatAgo(Math.max(0, now - at))
}
