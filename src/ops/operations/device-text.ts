// device-text.ts: devices for a person: a table with a row each, and all that is known of one.

import { zonedTime } from '../../std/clock.ts'
import type { z } from 'zod'
import { deviceStateNames, deviceStates, type DeviceState } from '../../domain/device-state.ts'
import { formatDuration, plural } from '../../std/quantity.ts'
import { bounded, quote, visible } from '../../std/quote.ts'
import { agoSince } from '../../std/text-table/text-lines.ts'
import { connectFacts } from '../connect-facts.ts'
import type { deviceSchema, devicesSchema } from '../http/answer-schemas/device-schemas.ts'
import type { Shown } from './operation.ts'
import type { Block, Cell } from './shown-block.ts'

type Devices = z.output<typeof devicesSchema>
type Device = Devices['devices'][number]
type Client = Devices['clients'][number]

/** The transmission of a message takes time, so a smaller difference is not a clock error. */
const skewMinMs = 500
const nameLengthMax = 32

const kindTexts = {
  device: 'not listed',
  client: 'no device',
  address: 'address',
  user: 'no device',
} as const

/** `: 2 silent, 1 sending`; '' where all counts are 0. */
export function stateCountsText(counts: Readonly<Record<DeviceState, number>>, before: string): string {
  const some = deviceStateNames
    .filter((state) => counts[state] > 0)
    .map((state) => `${counts[state]} ${deviceStates[state].words}`)
  return some.length === 0 ? '' : before + some.join(', ')
}

const filters = ['state', 'source', 'provider', 'address'] as const

export function devicesText(
  { total, states, restored, devices, clients, clientsForgotten }: Devices,
  {
    now,
    values,
  }: Shown<
    { find?: string | undefined; state?: DeviceState | undefined } & {
      [name in (typeof filters)[number]]?: string | undefined
    }
  >,
): Block[] {
  const { find } = values
  const given = filters.filter((name) => values[name] !== undefined)
  const none =
    find === undefined && given.length === 0
      ? 'No device is listed, none was seen, and no client waits to be one.'
      : `No device ${[
          ...(find === undefined ? [] : [`has ${quote(find, 64)} in its key, asset, client id or user name`]),
          ...given.map((name) => `has the ${name} ${quote(values[name] ?? '', 64)}`),
        ].join(' and ')}.`
  const notRead = restored ? [] : ['The records of the time before the start are not read yet.']
  if (total === 0) return [none, ...notRead, ...clientLines(clients, now)]
  const { state } = values
  const found = state === undefined ? total : states[state]
  const rows = devices.map((device) => [
    cut(device.device),
    device.listed ? cut(device.assetId ?? '-') : kindTexts[device.kind],
    deviceStates[device.state].words,
    device.lastSeen === null ? 'never' : agoSince(device.lastSeen, now),
    clockText(device.skewMs),
    device.client === null ? '-' : stateText(device.client),
    device.why ?? '',
  ])
  const head = ['device', 'asset', 'state', 'last message', 'clock', 'connection', 'why']
  return [
    `${plural(total, 'device')}${stateCountsText(states, ': ')}.`,
    ...notRead,
    '',
    { caption: 'devices', head, rows },
    ...(devices.length < found ? [`and ${found - devices.length} more`] : []),
    ...withheldLines(devices),
    ...clientLines(clients, now),
    ...(clientsForgotten === 0
      ? []
      : ['', `${plural(clientsForgotten, 'client')} without a connection forgotten: there were too many.`]),
  ]
}

/** With its last messages, where they were asked for. */
export type ShownDevice = z.output<typeof deviceSchema>

export function deviceText(view: Device, { now }: Pick<Shown<unknown>, 'now'>): Block[] {
  const { client, position, lastAccepted, lastRefused, medianGapMs, reasons, withheld } = view
  const ago = (at: string | null) => (at === null ? 'never' : `${zonedTime(at)}, ${agoSince(at, now)}`)
  const answer = (text: string, requestId: string | null): Cell => ({
    text: `${text} requestId ${requestId ?? '-'}`,
    ...(requestId !== null && { to: ['/page/ledger', { request: requestId }] }),
  })
  const facts: [string, Cell | null][] = [
    ['device', view.device],
    ['asset', view.listed ? (view.assetId ?? '-') : kindTexts[view.kind]],
    ['provider', view.provider === null ? '-' : alike('provider', view.provider)],
    ['source', view.source === null ? '-' : alike('source', view.source)],
    [
      'state',
      deviceStates[view.state].words + (view.since === null ? '' : ` since ${zonedTime(view.since)}`),
    ],
    ['why', view.why],
    ['muted until', view.mutedUntil === null ? null : mutedText(view)],
    ['last message', ago(view.lastSeen)],
    ['first message', ago(view.firstSeen)],
    ['messages', `${view.messages}, ${view.messagesPerHour} in the last hour`],
    ['usual gap', medianGapMs === null ? 'not known yet' : formatDuration(medianGapMs)],
    ['clock', clockText(view.skewMs)],
    ...connectionRows(client),
    [
      'last position',
      position === null
        ? '-'
        : `${position.latitude}, ${position.longitude} at ${ago(position.at)}${position.fixed ? '' : ', no fix'}`,
    ],
    [
      'last accepted',
      lastAccepted === null ? 'never' : answer(`${ago(lastAccepted.at)},`, lastAccepted.requestId),
    ],
    [
      'last refused',
      lastRefused === null
        ? 'never'
        : answer(
            `${ago(lastRefused.at)}, ${lastRefused.outcome}: ${lastRefused.reason ?? '-'}, ${lastRefused.detail ?? ''}`,
            lastRefused.requestId,
          ),
    ],
    ['duplicates', String(view.duplicates)],
    ['ignored', String(view.ignored)],
    ['dead letters', String(view.deadLetters)],
    ['quarantined', String(view.quarantined)],
  ]
  return [
    { facts },
    {
      caption: 'messages without a payload',
      head: ['kind', 'source', 'reason', '*count', 'first', 'last'],
      rows: reasons.map(({ kind, source, reason, count, firstAt, lastAt }) => [
        kind,
        source ?? '-',
        reason,
        String(count),
        zonedTime(firstAt),
        zonedTime(lastAt),
      ]),
    },
    {
      caption: 'values that were left out, or are doubtful',
      head: ['field', 'source', 'reason', '*values', 'sent', 'last'],
      rows: withheld.map(({ field, source, reason, count, isSent, lastValue }) => [
        field,
        source,
        reason,
        String(count),
        isSent ? 'sent' : 'omitted',
        lastValue === null ? '-' : String(lastValue),
      ]),
    },
  ]
}

/** The devices that have it, too. */
function alike(name: 'source' | 'provider' | 'address', value: string): Cell {
  return { text: value, to: ['/page/devices', { [name]: value }] }
}

/** Its silence is no problem until then. */
function mutedText({ mutedUntil, mutedBy }: Pick<Device, 'mutedUntil' | 'mutedBy'>): string {
  return `${zonedTime(mutedUntil ?? '')}, by ${mutedBy === 'table' ? 'the device table' : '`devices mute`'}`
}

function connectionRows(client: Client | null): [string, Cell | null][] {
  if (client === null) return [['connection', '-']]
  const {
    clientId,
    identity,
    userName,
    address,
    protocol,
    connect,
    since,
    takeOvers,
    refusedMessages,
    fault,
    unnamed,
  } = client
  return [
    ['connection', `${stateText(client)} since ${zonedTime(since)}`],
    ['client id', clientId === '' ? '-' : clientId],
    ['identity', identity ?? '-'],
    ['user name', userName ?? '-'],
    ['address', address === null ? '-' : alike('address', address)],
    ['protocol', protocol ?? '-'],
    ...(connect === null ? [] : connectFacts(connect).map(([name, text]): [string, string] => [name, text])),
    ['take-overs', String(takeOvers)],
    ['refused by a rule', plural(refusedMessages, 'message')],
    [
      'names no device',
      unnamed
        ? `${plural(unnamed.count, 'message')}, the last at ${zonedTime(unnamed.at)} on ${quote(unnamed.topic, 120)}: ${unnamed.reason}`
        : null,
    ],
    ['last fault', fault === null ? null : `${zonedTime(fault.at)}, ${fault.reason}: ${fault.detail}`],
  ]
}

/** Values that devices sent and that were left out, or are not plausible. */
function withheldLines(devices: readonly Pick<Device, 'device' | 'withheld'>[]): readonly string[] {
  const lines = devices.flatMap(({ device, withheld }) =>
    withheld.map(({ field, reason, count, isSent, lastValue }) => {
      const last = lastValue === null ? '' : `, last ${lastValue}`
      return `device ${quote(device, 64)}: ${field} ${isSent ? 'sent' : 'omitted'} ${count} x: ${reason}${last}`
    }),
  )
  return lines.length === 0 ? [] : ['', ...lines]
}

/** Clients in which the gateway found a fault: many of them are devices from which no message was mapped. */
function clientLines(clients: readonly Client[], now: number): readonly string[] {
  const lines: string[] = []
  for (const client of clients) {
    const { clientId, identity, address, refusedMessages, fault } = client
    if (fault === null) continue
    const by = [
      ...(identity === null ? [] : [`identity ${quote(identity, 64)}`]),
      address ?? 'unknown address',
    ]
    const refused = refusedMessages > 0 ? ` ${plural(refusedMessages, 'message')} refused by a rule.` : ''
    lines.push(
      `client ${quote(clientId, 64)} (${by.join(', ')}): ${stateText(client)}, ` +
        `${plural(fault.count, 'fault')}, the last ${agoSince(fault.at, now)}: ` +
        `${visible(bounded(fault.detail))} (${fault.reason})${refused}`,
    )
  }
  return lines.length === 0 ? [] : ['', ...lines]
}

function stateText({ state, willCame }: Client): string {
  const text = state === 'lost' ? 'connection lost' : state
  return willCame ? `${text} (will)` : text
}

function clockText(skewMs: number | null): string {
  if (skewMs === null) return '-'
  if (Math.abs(skewMs) < skewMinMs) return 'ok'
  return `${formatDuration(Math.abs(skewMs))} ${skewMs < 0 ? 'ahead' : 'behind, or late'}`
}

function cut(text: string): string {
  return text.length <= nameLengthMax ? text : `${text.slice(0, nameLengthMax - 1)}…`
}
