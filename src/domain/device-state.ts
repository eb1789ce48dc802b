// device-state.ts: the states of devices, and which one a device has: the only list of them, for the list,
// the counts, commands, the page and metrics. A device has one: the first that holds in deviceStateOf. And
// the orders of a list of devices.

import type { EpochMs } from '../std/clock.ts'

/** In the order in which they need a person. `words`: for people. `meaning`: for documents. */
export const deviceStates = {
  silent: {
    words: 'silent',
    meaning: 'Devices whose last message is longer ago than their rhythm lets expect.',
  },
  refused: {
    words: 'refused',
    meaning: 'Devices whose last CONNECT was refused, or whose messages a rule refuses.',
  },
  waiting: {
    words: 'waiting',
    meaning: 'Devices whose messages the gateway holds without an acknowledgement, because a store is full.',
  },
  repeating: {
    words: 'repeating',
    meaning: 'Devices that send, and bring nothing new: each message is a duplicate.',
  },
  not_mapped: {
    words: 'not mapped',
    meaning: 'Devices whose last message gave no payload, or whose client names no device.',
  },
  not_accepted: {
    words: 'not accepted',
    meaning: 'Devices of which the service accepts nothing: its last answers refuse their payloads.',
  },
  id_shared: {
    words: 'client id shared',
    meaning:
      'Devices whose client id another client uses, too: they close the connections of each other, or one keeps the other out.',
  },
  clock_wrong: { words: 'clock wrong', meaning: 'Devices whose clock is off by a day or more.' },
  no_position: {
    words: 'no position',
    meaning:
      'Devices that sent other values and no position that can be used for a quarter of an hour, where their source maps ' +
      'one. Longer for those that usually have one less often.',
  },
  never_sent: {
    words: 'never sent',
    meaning: 'Listed devices, and connected clients, of which no message is known.',
  },
  muted: {
    words: 'muted',
    meaning:
      'Devices that are silent, where `devices mute` or the device table says that this is no problem.',
  },
  sending: { words: 'sending', meaning: 'Devices that send, and whose messages give payloads.' },
} as const satisfies Readonly<Record<string, { words: string; meaning: string }>>

export type DeviceState = keyof typeof deviceStates

export const deviceStateNames = Object.keys(deviceStates) as DeviceState[]

/** Orders of a list of devices; for people and documents. */
export const deviceOrders = {
  state: 'those that need a person first',
  silent: 'the longest silence first, and those that never sent last',
  name: 'by name',
  clock: 'the worst clock first',
  last: 'the latest message first',
} as const

export type DeviceOrder = keyof typeof deviceOrders

export const deviceOrderNames = Object.keys(deviceOrders) as DeviceOrder[]

/** What the state of a device that sent follows from. */
export type DeviceFacts = {
  isRefused: boolean
  /** Its messages wait for room in a store: it can send nothing. */
  isWaiting: boolean
  isSilent: boolean
  /** Its silence is no problem now: a person or the device table says so. */
  isMuted: boolean
  isRepeating: boolean
  /** Its last message gave no payload. */
  isLost: boolean
  /** When the service last accepted, and last refused, a payload of it. */
  accepted: { at: EpochMs } | null
  refused: { at: EpochMs; outcome: 'retried' | 'dead'; times: number } | null
  isIdShared: boolean
  /** Arrival minus device time. */
  skewMs: number | null
  /** When its last position came, and its last record. */
  positionArrivedAt: EpochMs | null
  lastMappedAt: EpochMs | null
  /** For how long it has sent records without a position that its source maps, and usually does. */
  blindMs: number
  blindUsualMs: number
}

const dayMs = 86_400_000
/** Longer than the drive through a tunnel, and than what is usual. */
const blindMinMs = 900_000
const blindTimesUsual = 2
/** Refusals in a row after which a device is not accepted. A single payload may pass with its next try. */
const refusedTimes = 3
/** Or the time from the last accepted payload to the last refused one. */
const refusedMs = 600_000

export function deviceStateOf(facts: DeviceFacts): DeviceState {
  if (facts.isRefused) return 'refused'
  if (facts.isWaiting) return 'waiting'
  // Before what may follow from it: its client does not get in.
  if (facts.isIdShared) return 'id_shared'
  if (facts.isSilent) return facts.isMuted ? 'muted' : 'silent'
  if (facts.isRepeating) return 'repeating'
  if (facts.isLost) return 'not_mapped'
  if (isNotAccepted(facts)) return 'not_accepted'
  if (Math.abs(facts.skewMs ?? 0) >= dayMs) return 'clock_wrong'
  const { positionArrivedAt, lastMappedAt, blindMs, blindUsualMs } = facts
  const isLate = positionArrivedAt !== null && (lastMappedAt ?? 0) - positionArrivedAt >= dayMs
  if (isLate || blindMs >= Math.max(blindMinMs, blindTimesUsual * blindUsualMs)) return 'no_position'
  return 'sending'
}

function isNotAccepted({ accepted, refused }: DeviceFacts): boolean {
  if (refused === null || (accepted !== null && accepted.at >= refused.at)) return false
  const { at, outcome, times } = refused
  if (outcome === 'dead' || times >= refusedTimes) return true
  return accepted !== null && at - accepted.at >= refusedMs
}

/** As keys of JSON: `notMapped`. */
export type StateNumbers = { [State in DeviceState as CamelCase<State>]: number }
type CamelCase<Text extends string> = Text extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Text

export function stateKey(state: DeviceState): keyof StateNumbers {
  return state.replace(/_(\w)/g, (_match, letter: string) => letter.toUpperCase()) as keyof StateNumbers
}

export const noDevices = (): Record<DeviceState, number> =>
  Object.fromEntries(deviceStateNames.map((state) => [state, 0])) as Record<DeviceState, number>
