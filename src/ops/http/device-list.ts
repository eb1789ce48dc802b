// device-list.ts: all devices that are listed, were seen or were refused, over HTTP.
//
//   /devices?limit=&state=&sort=    the devices that need a person first: silent, refused, not mapped, never
//                                   sent; the latest change first. `state` selects one state. `sort=clock`:
//                                   the worst clock first
//   /devices/{key}?messages=1&explain=1    one of them, with its last messages: raw, mapped, and what became
//                                   of each payload; 404 with the nearest names where nothing is known
//
// The list is made in slices, and holds no more than `limit` devices and a slice.

import { isoTime, isoTimeOrNull } from '../../std/clock.ts'
import { nearestNames } from '../../std/nearest-names.ts'
import { quote } from '../../std/quote.ts'
import type { DeviceClient, DeviceState, DeviceView, StageViews } from '../types.ts'
import { badRequest, notFound, ok, problem, type JsonAnswer } from './json-answer.ts'
import { contentOf } from './tap-stream.ts'

export type DeviceSelection = { limit: number; state: DeviceState | null; sort: 'state' | 'clock' }

const states = ['silent', 'refused', 'not_mapped', 'never_sent', 'sending'] as const
const sorts = ['state', 'clock'] as const
const namesCompared = 20_000

/** A text says what is wrong. */
export function readDeviceParams(query: URLSearchParams, limit: number): DeviceSelection | string {
  for (const key of query.keys())
    if (!['limit', 'state', 'sort'].includes(key))
      return `Unknown parameter ${quote(key, 40)}: the parameters are limit, state and sort.`
  const state = query.get('state')
  const sort = query.get('sort') ?? 'state'
  const known = states.find((one) => one === state) ?? null
  if (state !== null && known === null)
    return `state must be one of ${states.join(', ')}, found ${quote(state, 40)}.`
  const order = sorts.find((one) => one === sort)
  if (order === undefined) return `sort must be one of ${sorts.join(', ')}, found ${quote(sort, 40)}.`
  return { limit, state: known, sort: order }
}

/** `clients`: those with a fault, whether or not they are devices that were seen. Null: not yet. */
export async function devicesOf({ mapping, ingest }: StageViews, selection: DeviceSelection) {
  if (!mapping) return null
  const { limit, state, sort } = selection
  const counts: Record<DeviceState, number> = {
    silent: 0,
    refused: 0,
    not_mapped: 0,
    never_sent: 0,
    sending: 0,
  }
  let devices: DeviceView[] = []
  let seen = 0
  let total = 0
  for await (const slice of mapping.devices()) {
    for (const device of slice) {
      counts[device.state] += 1
      if (device.messages > 0) seen += 1
    }
    total += slice.length
    const chosen = state === null ? slice : slice.filter((device) => device.state === state)
    devices = [...devices, ...chosen].sort(sort === 'clock' ? byClock : byState).slice(0, limit)
  }
  const { restored } = mapping.deviceTotals()
  return { total, seen, states: counts, restored, devices, clients: faultsOf(ingest, limit) }
}

export async function deviceOf(
  { mapping }: StageViews,
  path: string,
  { key, query, signal }: { key: string; query: URLSearchParams; signal: AbortSignal },
): Promise<JsonAnswer> {
  const wanted = readShowParams(query)
  if (typeof wanted === 'string') return badRequest(wanted, 'Correct the parameters.')
  if (!mapping) return notFound(path, 'The daemon is starting.')
  let name = key
  try {
    name = decodeURIComponent(key)
  } catch (error) {
    // A lone percent sign may be part of a name.
    if (!(error instanceof URIError)) throw error
  }
  const value = mapping.device(name)
  if (value !== null && wanted === null) return ok(value)
  if (value !== null) {
    const { messages, skipped } = await mapping.messages(name, wanted ?? { explain: false }, signal)
    const shown = messages.map(({ bytes, cutBytes, ...one }) => ({ ...one, ...contentOf(bytes, cutBytes) }))
    return ok({ ...value, lastMessages: shown, lastMessagesSkipped: skipped })
  }
  const names: string[] = []
  for await (const slice of mapping.devices()) {
    names.push(...slice.map(({ device }) => device))
    if (names.length >= namesCompared) break
  }
  const near = nearestNames(name, names)
  return problem(404, {
    what: `No device ${quote(name, 80)} is known.`,
    why: 'The device table does not have it, no message of it has come, and no client of this name was refused.',
    act:
      near.length === 0
        ? 'Request /devices for the list.'
        : `Did you mean ${near.map((one) => quote(one, 80)).join(' or ')}?`,
  })
}

/** Null where no messages are asked for. */
function readShowParams(query: URLSearchParams): { explain: boolean } | null | string {
  for (const [key, value] of query) {
    if (key !== 'messages' && key !== 'explain')
      return `Unknown parameter ${quote(key, 40)}: the parameters are messages and explain.`
    if (value !== '0' && value !== '1') return `${key} must be 0 or 1, found ${quote(value, 40)}.`
  }
  return query.get('messages') === '1' ? { explain: query.get('explain') === '1' } : null
}

function faultsOf(ingest: StageViews['ingest'], limit: number): readonly DeviceClient[] {
  const clients = ingest?.clients?.withFaults(limit) ?? []
  return clients.map(({ since, refusedAt, messageRefusedAt, fault, ...client }) => ({
    ...client,
    since: isoTime(since),
    refusedAt: isoTimeOrNull(refusedAt),
    messageRefusedAt: isoTimeOrNull(messageRefusedAt),
    fault: fault && { ...fault, at: isoTime(fault.at) },
  }))
}

function byClock(a: DeviceView, b: DeviceView): number {
  return Math.abs(b.skewMs ?? 0) - Math.abs(a.skewMs ?? 0) || byName(a, b)
}

/** The latest change first: an old one was seen before. */
function byState(a: DeviceView, b: DeviceView): number {
  const order = states.indexOf(a.state) - states.indexOf(b.state)
  if (order !== 0) return order
  if (a.since === b.since || a.state === 'sending') return byName(a, b)
  return (a.since ?? '') > (b.since ?? '') ? -1 : 1
}

function byName(a: DeviceView, b: DeviceView): number {
  return a.device < b.device ? -1 : 1
}
