// types.ts: what is kept of one device, and what is shown of it.

import type { ProviderName } from '../domain/ids.ts'
import type { Sender } from '../domain/message.ts'
import type { WithheldValue } from '../domain/payload.ts'
import type { EpochMs } from '../std/clock.ts'
import type { MessageRing } from './recent-messages/message-ring.ts'

/** What messages became that gave no payload. */
export type LossKind = 'ignored' | 'dead' | 'quarantined'

/** `reason` is one of a bounded set of texts; `source` is null where no source took the message. */
export type Loss = {
  readonly kind: LossKind
  readonly source: string | null
  readonly reason: string
  count: number
  firstAt: EpochMs
  lastAt: EpochMs
}

/** The last answer of the service about a payload of the device. */
export type Accepted = { at: EpochMs; requestId: string | null }

/** `times`: payloads that the service refused since it accepted one. */
export type Refused = Accepted & {
  outcome: 'retried' | 'dead'
  times: number
  reason: string | null
  detail: string | null
}

/** `newAt`: when the last new message came; null where none came since the start. */
export type Repeating = { messages: number; from: EpochMs; newAt: EpochMs | null; isOneMessage: boolean }

/** Its numbers are in one array for all devices: see record-table.ts. */
export type DeviceRecord = {
  /** Of device and provider. */
  key: string
  readonly device: string
  /** Another one where the device has moved (device-records.ts). */
  provider: ProviderName
  /** Where its numbers begin. */
  readonly base: number
  /** As the mapping had it at the last message. */
  assetId: string
  isListed: boolean
  /** Its asset has a privacy profile: positions and messages of it are not kept. */
  isPrivate: boolean
  /** Of the last message. */
  sender: Sender | null
  /** The message source of its last message; null for the embedded broker. */
  from: string | null
  /** The source of its last message; null while it is unknown. */
  source: string | null
  /** Its silence is no problem until then: a person said so; null for most. */
  mutedUntil: EpochMs | null
  /** Whether the receiver had a fix then; false for a last known position. */
  isFixed: boolean
  /** The one that was noted last is last. */
  losses: Loss[]
  /** Its last message: a record of it was read, or it gave no payload. Null while neither is known. */
  became: 'mapped' | 'lost' | null
  accepted: Accepted | null
  refused: Refused | null
  /** Those of earlier mappings and starts; the mapper has those since its own. */
  withheld: readonly WithheldValue[]
  /** Median of arrival minus device time at the last look; null while unknown. */
  skewMs: number | null
  /** Of the first payload of its last message; '' where it has no device time. */
  windowKey: string
  /** Its last messages (message-ring.ts); null where none are kept. */
  ring: MessageRing | null
  isDirty: boolean
  /** It is on the disk. */
  isStored: boolean
  /** On the disk its last times are those of a clock that was not known to be right. */
  isUndated: boolean
  /** It is in the table no more. */
  isGone: boolean
}

export type Position = {
  latitude: number
  longitude: number
  /** Device time, or the arrival where the message has none. */
  at: EpochMs
  arrivedAt: EpochMs
  isFixed: boolean
}

/** A record as it is at the moment of the question. */
export type DeviceRecordView = Standing & {
  messages: number
  /** Those of the last 60 minutes, about. */
  messagesPerHour: number
  silentAfterMs: number
  /** Its last message, where that was longer ago than its rhythm lets expect; else null. */
  silentSince: EpochMs | null
  position: Position | null
  duplicates: number
  /** Its last messages brought nothing new; else null. */
  repeating: Repeating | null
  losses: readonly Loss[]
  withheld: readonly WithheldValue[]
}

/** How a device stands: what its state follows from. */
export type Standing = Pick<DeviceRecord, 'from' | 'isListed'> & {
  device: string
  provider: ProviderName
  assetId: string
  /** Of its last message; null while it is unknown. */
  source: string | null
  sender: Sender | null
  firstSeen: EpochMs | null
  lastSeen: EpochMs | null
  /** When a record of the device was last read without a rejection. */
  lastMappedAt: EpochMs | null
  /** Null while too few messages came to know it. */
  medianGapMs: number | null
  isSilent: boolean
  /** Of the last 15 days, of those of an hour or more; 0 for none. */
  longestPauseMs: number
  mutedUntil: EpochMs | null
  /** What its last message became, where it gave no payload. */
  loss: Loss | null
  isRepeating: boolean
  accepted: Accepted | null
  refused: Refused | null
  skewMs: number | null
  positionArrivedAt: EpochMs | null
  /** For how long it has sent records without a position, and for how long it usually does. */
  blindMs: number
  blindUsualMs: number
}

/** The clock that noted the last times of a record, while the true time was not known. */
export type UnknownClock = {
  bootId: string
  /** Its time at the start of the machine. */
  bootAt: EpochMs
}
