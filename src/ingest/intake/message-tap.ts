// message-tap.ts: shows messages as they arrive, raw and mapped, to readers that ask for them.
//
//   intake -- record(message, result) --> of each tap: filter, rate, ring -- wake --> reader --> HTTP
//
// Without a reader it costs one boolean test a message. With one, what passes the filter is copied into a
// ring, at most `perSecondMax` a second and `entriesMax` that were not read yet; beyond, messages are skipped
// and counted, and the count is shown. Nothing here waits, and no reader can delay the intake.

import type { Clock, EpochMs } from '../../std/clock.ts'
import type { Message, MessageProperties, QoS, Sender, UserProperties } from '../../domain/message.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import { topicFilterOf, type StateChanges, type MapResult } from '../../mapping/mapping.ts'

export type Tap = {
  /** There is a reader: read once per message. */
  on(): boolean
  /** `message` is reused by the caller: what is kept of it is copied. */
  record(message: Message, result: MapResult): void
  /** The payloads of messages that were taken as parts before. */
  recordClosed(applied: StateChanges): void
}

/** What passes; null for everything. A device is also found by its name in the topic or as client id. */
export type TapFilter = {
  device: string | null
  topic: string | null
  source: string | null
  /** False for a client whose messages are left out. */
  passes?: (clientId: string) => boolean
}

export type TapEntry =
  | {
      kind: 'message'
      topic: string
      bytes: Buffer
      /** Bytes that were left out. */
      cutBytes: number
      qos: QoS
      retain: boolean
      dup: boolean
      userProperties: UserProperties | null
      properties: MessageProperties | null
      sender: Sender
      arrivedAt: EpochMs
      result: MapResult
    }
  | { kind: 'closed'; at: EpochMs; payloads: readonly MappedPayload[] }

export type TapReader = {
  /** The entries since the last call. */
  take(): TapEntry[]
  /** Messages skipped since the last call. */
  takeDropped(): number
  close(): void
}

export type OpenedTap =
  { kind: 'open'; reader: TapReader } | { kind: 'full'; tapsMax: number } | { kind: 'malformed'; why: string }

export type Taps = Tap & {
  /** `wake` is called once when there are entries to take, and again after they were taken. */
  open(filter: TapFilter, wake: () => void): OpenedTap
}

type OpenTap = {
  filter: TapFilter
  matchesTopic: (topic: string) => boolean
  wake: () => void
  entries: TapEntry[]
  dropped: number
  /** Start of the present second, and entries in it. */
  secondAtMs: number
  thisSecond: number
}

const tapsMax = 4
const perSecondMax = 100
/** Of one tap that is not read; with bytesMax at most 16 MiB, and 4 MiB of properties. */
const entriesMax = 256
const bytesMax = 65_536

export function createTaps({ clock }: { clock: Clock }): Taps {
  const taps = new Set<OpenTap>()
  return {
    on() {
      return taps.size > 0
    },
    record: saw,
    recordClosed: sawClosed,
    open,
  }

  function open(filter: TapFilter, wake: () => void): OpenedTap {
    if (taps.size >= tapsMax) return { kind: 'full', tapsMax }
    const topics = filter.topic === null ? null : topicFilterOf(filter.topic)
    if (topics?.kind === 'malformed') return topics
    const matchesTopic = topics === null ? () => true : topics.matches
    const tap: OpenTap = {
      filter,
      matchesTopic,
      wake,
      entries: [],
      dropped: 0,
      secondAtMs: Number.NEGATIVE_INFINITY,
      thisSecond: 0,
    }
    taps.add(tap)
    return { kind: 'open', reader: readerOf(tap) }
  }

  function readerOf(tap: OpenTap): TapReader {
    return {
      take: () => tap.entries.splice(0),
      takeDropped() {
        const { dropped } = tap
        tap.dropped = 0
        return dropped
      },
      close: () => void taps.delete(tap),
    }
  }

  function saw(message: Message, result: MapResult): void {
    for (const tap of taps)
      if (passes(tap, message, result) && mayKeep(tap)) keep(tap, entryOf(message, result))
  }

  function sawClosed({ payloads }: StateChanges): void {
    if (payloads.length === 0) return
    for (const tap of taps) {
      // The topic and the source of a record of several messages are not known here.
      const { device, topic, source } = tap.filter
      if (topic !== null || source !== null) continue
      const own = device === null ? payloads : payloads.filter((payload) => payload.device === device)
      if (own.length > 0 && mayKeep(tap)) keep(tap, { kind: 'closed', at: clock.now(), payloads: own })
    }
  }

  function mayKeep(tap: OpenTap): boolean {
    const nowMs = clock.monotonic()
    if (nowMs - tap.secondAtMs >= 1000) {
      tap.secondAtMs = nowMs
      tap.thisSecond = 0
    }
    if (tap.thisSecond < perSecondMax && tap.entries.length < entriesMax) {
      tap.thisSecond += 1
      return true
    }
    tap.dropped += 1
    return false
  }
}

function keep(tap: OpenTap, entry: TapEntry): void {
  tap.entries.push(entry)
  if (tap.entries.length === 1) tap.wake()
}

function passes({ filter, matchesTopic }: OpenTap, message: Message, result: MapResult): boolean {
  const { device, source } = filter
  if (filter.passes?.(message.sender.clientId) === false) return false
  if (source !== null && result.source !== source) return false
  return matchesTopic(message.topic) && (device === null || isAbout(device, message, result))
}

/** An ignored message has no device in its result; its topic or its client may name it. */
function isAbout(device: string, { topic, sender }: Message, result: MapResult): boolean {
  if (result.kind === 'payloads') return result.payloads.some((payload) => payload.device === device)
  if ('device' in result && result.device !== null) return result.device === device
  return sender.clientId === device || `/${topic}/`.includes(`/${device}/`)
}

function entryOf(message: Message, result: MapResult): TapEntry {
  const { topic, bytes, qos, retain, dup, sender, arrivedAt } = message
  const { userProperties = null, properties = null } = message
  return {
    kind: 'message',
    topic,
    bytes: Buffer.from(bytes.subarray(0, bytesMax)),
    cutBytes: Math.max(0, bytes.length - bytesMax),
    qos,
    retain,
    dup,
    userProperties,
    properties,
    sender,
    arrivedAt,
    result,
  }
}
