// device-list.ts: all devices that are listed, were seen or were refused, over HTTP.
//
//   /devices?limit=&state=&sort=&find=     the devices that need a person first: silent, refused, repeating,
//                                   not mapped, never sent; the latest change first. `state` selects one
//                                   state; `find` by names. `sort=clock`: the worst clock first
//   /devices/{key}?messages=1&explain=1    one of them, by its key, asset, client id or user name, with its
//                                   last messages: raw, mapped, and what became of each payload; 404 with
//                                   the nearest names where nothing is known
//
// The list is made in slices, and holds no more than `limit` devices and a slice.

import { isoTime } from '../../std/clock.ts'
import { isoTimes } from '../../std/iso-times.ts'
import { nearestNames } from './nearest-names.ts'
import { quote } from '../../std/quote.ts'
import { deviceStateNames, noDevices, type DeviceState } from '../../domain/device-state.ts'
import type { DeviceClient, DeviceView, StageViews } from '../types.ts'
import { ok, problem, starting, type JsonAnswer } from './json-answer.ts'
import type { HttpSource } from './http-routing/route.ts'
import { contentOf } from './streams/tap-stream.ts'

type DeviceSelection = {
  limit: number
  state: DeviceState | null
  sort: 'state' | 'clock'
  /** In the key, the asset, the client id or the user name, whatever its case; '' selects all. */
  find?: string
}

export const deviceSorts = ['state', 'clock'] as const
const namesCompared = 20_000

/** `clients`: those with a fault, whether or not they are devices that were seen. Null: not yet. */
export async function devicesOf({ mapping, ingest }: StageViews, selection: DeviceSelection) {
  if (!mapping) return null
  const { limit, state, sort, find = '' } = selection
  const counts = noDevices()
  let devices: DeviceView[] = []
  let seen = 0
  let total = 0
  const wanted = find.toLowerCase()
  for await (const every of mapping.devices()) {
    const slice = wanted === '' ? every : every.filter((device) => isFound(device, wanted))
    for (const device of slice) {
      counts[device.state] += 1
      if (device.messages > 0) seen += 1
    }
    total += slice.length
    const chosen = state === null ? slice : slice.filter((device) => device.state === state)
    devices = [...devices, ...chosen].sort(sort === 'clock' ? byClock : byState).slice(0, limit)
  }
  const { restored } = mapping.deviceTotals()
  const more = (state === null ? total : counts[state]) > devices.length
  const clients = faultsOf(ingest, limit)
  const clientsForgotten = ingest?.clients?.forgotten() ?? 0
  return { total, seen, states: counts, restored, devices, more, clients, clientsForgotten }
}

/** The key of a device that a person names by its asset, client id or user; any other name as it is. */
export function deviceKeyOf({ mapping }: Pick<StageViews, 'mapping'>, name: string): string {
  const found = mapping?.device(name) ?? null
  return found?.kind === 'device' ? found.device : name
}

/** With the messages of each of the last 24 hours: only of devices that are shown. */
export function withHours({ mapping }: StageViews, devices: readonly DeviceView[]) {
  return devices.map((one) => ({ ...one, messagesByHour: mapping?.messagesByHour(one.device) ?? null }))
}

function isFound({ device, assetId, client }: DeviceView, wanted: string): boolean {
  const names = [device, assetId, client?.clientId, client?.userName]
  return names.some((name) => name?.toLowerCase().includes(wanted) === true)
}

type WantedDevice = { key: string; messages: boolean; explain: boolean; signal: AbortSignal }

export async function deviceOf(
  { stages: { mapping }, now }: Pick<HttpSource, 'stages' | 'now'>,
  { key, messages: withMessages, explain, signal }: WantedDevice,
): Promise<JsonAnswer> {
  if (!mapping) return starting()
  const found = mapping.device(key)
  const value = found && {
    now: isoTime(now()),
    ...found,
    messagesByHour: mapping.messagesByHour(found.device),
  }
  if (value !== null && !withMessages) return ok(value)
  if (value !== null) {
    const { messages, skipped } = await mapping.messages(value.device, { explain }, signal)
    const shown = messages.map(({ bytes, cutBytes, ...one }) => ({ ...one, ...contentOf(bytes, cutBytes) }))
    return ok({ ...value, lastMessages: shown, lastMessagesSkipped: skipped })
  }
  const names: string[] = []
  for await (const slice of mapping.devices()) {
    names.push(...slice.map(({ device }) => device))
    if (names.length >= namesCompared) break
  }
  const nearest = nearestNames(key, names)
  return problem(404, 'NOT_FOUND', {
    what: `No device ${quote(key, 80)} is known.`,
    why: 'It is no device, asset, user, client id or address that the gateway has seen or that its config names.',
    act:
      nearest.length === 0
        ? 'Request /devices for the list.'
        : `Did you mean ${nearest.map((one) => quote(one, 80)).join(' or ')}?`,
    nearest,
  })
}

function faultsOf(ingest: StageViews['ingest'], limit: number): readonly DeviceClient[] {
  return (ingest?.clients?.withFaults(limit) ?? []).map((client) => isoTimes(client))
}

function byClock(a: DeviceView, b: DeviceView): number {
  return Math.abs(b.skewMs ?? 0) - Math.abs(a.skewMs ?? 0) || byName(a, b)
}

/** The latest change first: an old one was seen before. */
function byState(a: DeviceView, b: DeviceView): number {
  const order = deviceStateNames.indexOf(a.state) - deviceStateNames.indexOf(b.state)
  if (order !== 0) return order
  if (a.since === b.since || a.state === 'sending') return byName(a, b)
  return (a.since ?? '') > (b.since ?? '') ? -1 : 1
}

function byName(a: DeviceView, b: DeviceView): number {
  return a.device < b.device ? -1 : 1
}
