// device-list.ts: all devices that are listed, were seen or were refused, over HTTP.
//
//   /devices?limit=&state=&sort=&find=     the devices that need a person first: silent, refused, repeating,
//                                   not mapped, never sent; the latest change first. `state` selects one
//                                   state; `find` by names; `source`, `provider` and `address` one of each.
//                                   `sort`: the orders of domain/device-state
//   /devices/{key}?messages=1&explain=1    one of them, by its key, asset, client id or user name, with its
//                                   last messages: raw, mapped, and what became of each payload; 404 with
//                                   the nearest names where nothing is known
//
// The list is made in slices, and holds no more than twice `limit` devices and a slice. Between two slices a
// request waits for its turn, so that many lists at once cost the devices no more time than one.

import { distance } from 'fastest-levenshtein'
import { isoTime } from '../../std/clock.ts'
import { isoTimes } from '../../std/iso-times.ts'
import { quote } from '../../std/quote.ts'
import { deviceStateNames, noDevices, type DeviceOrder, type DeviceState } from '../../domain/device-state.ts'
import type { DeviceClient, DeviceView, StageViews } from '../types.ts'
import { ok, problem, starting, type JsonAnswer } from './json-answer.ts'
import type { HttpSource } from './http-routing/route.ts'

export type DeviceFilter = {
  state?: DeviceState | undefined
  /** In the key, the asset, the client id or the user name, whatever its case. */
  find?: string | undefined
  source?: string | undefined
  provider?: string | undefined
  /** The address of the client begins with it. */
  address?: string | undefined
}

type DeviceSelection = DeviceFilter & { limit: number; sort: DeviceOrder }

const sliceDevices = 250
const namesCompared = 20_000

/** `total` and `states` count the devices that all but `state` selects. */
export async function devicesOf(
  { mapping, ingest }: StageViews,
  selection: DeviceSelection,
  turn: () => Promise<void>,
) {
  if (!mapping) return null
  const { limit, state, sort } = selection
  const isChosen = filterOf(selection)
  const counts = noDevices()
  let devices: DeviceView[] = []
  let seen = 0
  let total = 0
  for await (const every of mapping.devices()) {
    await turn()
    for (const device of every) {
      if (!isChosen(device)) continue
      total += 1
      counts[device.state] += 1
      if (device.messages > 0) seen += 1
      if (state === undefined || device.state === state) devices.push(device)
    }
    // Sorting at each slice would cost more than all the rest.
    if (devices.length > 2 * limit) devices = devices.sort(orders[sort]).slice(0, limit)
  }
  devices = devices.sort(orders[sort]).slice(0, limit)
  const { restored } = mapping.deviceTotals()
  const more = (state === undefined ? total : counts[state]) > devices.length
  const clients = faultsOf(ingest, selection)
  const clientsForgotten = ingest?.clients?.forgotten() ?? 0
  return { total, seen, states: counts, restored, devices, more, clients, clientsForgotten }
}

/** The key of a device that a person names by its asset, client id or user; any other name as it is. */
export function deviceKeyOf({ mapping }: Pick<StageViews, 'mapping'>, name: string): string {
  const found = mapping?.device(name) ?? null
  return found?.kind === 'device' ? found.device : name
}

/** With the messages of each of the last 24 hours: only of devices that are shown. */
export async function withHours(
  { mapping }: StageViews,
  devices: readonly DeviceView[],
  turn: () => Promise<void>,
) {
  const shown: (DeviceView & { messagesByHour: readonly number[] | null })[] = []
  for (const one of devices) {
    if (shown.length % sliceDevices === 0) await turn()
    shown.push({ ...one, messagesByHour: mapping?.messagesByHour(one.device) ?? null })
  }
  return shown
}

function filterOf({ source, provider, address, find }: DeviceFilter): (device: DeviceView) => boolean {
  const wanted = find?.toLowerCase() ?? ''
  return (device) =>
    (source === undefined || device.source === source) &&
    (provider === undefined || device.provider === provider) &&
    (address === undefined || device.client?.address?.startsWith(address) === true) &&
    isFound(device, wanted)
}

function isFound({ device, assetId, client }: DeviceView, wanted: string): boolean {
  return isNamed([device, assetId, client?.clientId, client?.userName], wanted)
}

function isNamed(names: readonly (string | null | undefined)[], wanted: string): boolean {
  return wanted === '' || names.some((name) => name?.toLowerCase().includes(wanted) === true)
}

type WantedDevice = { key: string; messages: boolean; explain: boolean; signal: AbortSignal }

export async function deviceOf(
  { stages: { mapping }, ourNow }: Pick<HttpSource, 'stages' | 'ourNow'>,
  { key, messages: withMessages, explain, signal }: WantedDevice,
): Promise<JsonAnswer> {
  if (!mapping) return starting()
  const found = mapping.device(key)
  const value = found && {
    now: isoTime(ourNow()),
    ...found,
    messagesByHour: mapping.messagesByHour(found.device),
  }
  if (value !== null && !withMessages) return ok(value)
  if (value !== null) {
    const { messages, skipped } = await mapping.messages(value.device, { explain }, signal)
    return ok({ ...value, lastMessages: messages, lastMessagesSkipped: skipped })
  }
  const names: string[] = []
  for await (const slice of mapping.devices()) {
    names.push(...slice.map(({ device }) => device))
    if (names.length >= namesCompared) break
  }
  const nearest = nearestNames(key, names)
  return problem(404, 'NOT_FOUND', {
    what: `No device ${quote(key, 80)} is known.`,
    why: mapping.deviceTotals().restored
      ? 'It is no device, asset, user, client id or address that the gateway has seen or that its config names.'
      : 'The records of the time before the start are not read yet.',
    act:
      nearest.length === 0
        ? 'Request /devices for the list.'
        : `Did you mean ${nearest.map((one) => quote(one, 80)).join(' or ')}?`,
    nearest,
  })
}

/** Which source or provider a client sends for is not known. */
function faultsOf(ingest: StageViews['ingest'], selection: DeviceSelection): readonly DeviceClient[] {
  const { limit, find, address: from, source, provider } = selection
  if (source !== undefined || provider !== undefined) return []
  const wanted = find?.toLowerCase() ?? ''
  return (ingest?.clients?.withFaults(Infinity) ?? [])
    .filter(({ clientId, userName, identity, address }) => {
      const names = [clientId, userName, identity, address]
      return isNamed(names, wanted) && (from === undefined || address?.startsWith(from) === true)
    })
    .slice(0, limit)
    .map((client) => isoTimes(client))
}

const orders: Readonly<Record<DeviceOrder, (a: DeviceView, b: DeviceView) => number>> = {
  state: byState,
  silent: (a, b) => byText(a.lastSeen ?? never, b.lastSeen ?? never) || byName(a, b),
  name: byName,
  clock: (a, b) => Math.abs(b.skewMs ?? 0) - Math.abs(a.skewMs ?? 0) || byName(a, b),
  last: (a, b) => byText(b.lastSeen ?? '', a.lastSeen ?? '') || byName(a, b),
}

/** Behind each time. */
const never = '~'

function byText(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

/** The latest change first: an old one was seen before. */
function byState(a: DeviceView, b: DeviceView): number {
  const order = deviceStateNames.indexOf(a.state) - deviceStateNames.indexOf(b.state)
  if (order !== 0) return order
  if (a.since === b.since || a.state === 'sending') return byName(a, b)
  return (a.since ?? '') > (b.since ?? '') ? -1 : 1
}

function byName(a: DeviceView, b: DeviceView): number {
  return byText(a.device, b.device)
}

// The known names that may be meant by another one, such as the key of a device.

const lengthMax = 64

/** At most `most`, the most similar first: by a typing mistake in four characters, or as its start. */
function nearestNames(name: string, names: Iterable<string>, most = 3): readonly string[] {
  if (name === '' || name.length > lengthMax) return []
  const wanted = name.toLowerCase()
  const allowed = Math.max(1, Math.floor(wanted.length / 4))
  const found: { name: string; apart: number }[] = []
  for (const known of names) {
    if (known.length > lengthMax) continue
    const other = known.toLowerCase()
    const isPart = wanted.length >= 3 && other.includes(wanted)
    const apart = Math.abs(other.length - wanted.length) > allowed ? Infinity : distance(wanted, other)
    if (apart <= allowed) found.push({ name: known, apart })
    else if (isPart) found.push({ name: known, apart: allowed + 1 })
  }
  return found
    .sort((a, b) => a.apart - b.apart || (a.name < b.name ? -1 : 1))
    .slice(0, most)
    .map((one) => one.name)
}
