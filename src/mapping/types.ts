// types.ts: the types that several folders of the mapping share. It imports next to nothing of them.
//
//   Place           where a value is read
//   RecordContext   the record at hand, and what its parts report about it
//   StateChanges    what is to be stored when records of several messages close
//   Encoding        how the bytes of a message become a value, with or without memory
//   MapResult       what a message becomes
//   DeviceNotes     what the mapper reports of devices

import type { ProviderName } from '../domain/ids.ts'
import type { Message, MessageProperties, RecordMark, Sender, UserProperties } from '../domain/message.ts'
import type { DuplicateRule, MappedPayload } from '../domain/payload.ts'
import type { EpochMs } from '../std/clock.ts'
import type { BodyLimits } from './body/body-limits.ts'
import type { DecodeFault, QuarantineReason, UnmappableReason } from './reasons.ts'

/** The record that another record was found in, and those around it; undefined beyond the depth of `each`. */
export type Up = { readonly record: unknown; readonly up: Up } | undefined

/** Why a record became no payload. `reason` of `ignored` is one of a bounded set of texts. */
export type Rejection =
  | { kind: 'refused'; reason: string; detail: string; isTimed?: boolean }
  | { kind: 'ignored'; reason: string }
  | { kind: 'quarantined'; reason: QuarantineReason; detail: string; isTimed?: boolean }

/** Where a value is read: a record, and what is around it. */
export type Place = {
  readonly record: unknown
  /** The whole message. */
  readonly root: unknown
  readonly up: Up
  /** Captures of the topic. */
  readonly captures: readonly string[]
}

type ReadWritten = (place: Place) => unknown

export type Coordinates = { readonly latitude: number; readonly longitude: number }

/** A device as its notes see it: an entry of devices/devices.ts. */
export type NotedDevice = {
  readonly device: string
  readonly provider: ProviderName
  readonly assetId: string
  /** The device table has it. */
  readonly listed: boolean
  /** The source that knows it by this entry. */
  readonly source: string
  /** Not null: its asset has a privacy profile. */
  readonly withhold: object | null
  /** Belongs to the owner of the notes, so that it needs no look-up. */
  note: object | null
}

/**
 * Receives what the mapper sees of devices while messages arrive. It is called for each message, so it
 * allocates nothing.
 */
export type DeviceNotes = {
  /** The calls that follow are about this message. */
  begin(message: Message): void
  /** The message is of this device. A message with many records says so for each. */
  heard(entry: NotedDevice): void
  /** A record without a position was read. `hasPositions`: its source maps one. */
  read(entry: NotedDevice, hasPositions: boolean): void
  /** A record with the position in the context was read. `at`: the time of the position. */
  readPosition(entry: NotedDevice, at: EpochMs, isFixed: boolean, place: Coordinates): void
  /** All of the message was mapped. Not for a message that is mapped later, after its expression. */
  ended(entry: NotedDevice, became: MapResult['kind']): void
  /** The message, or a record of it, gives no payload. */
  lost(
    entry: NotedDevice,
    kind: 'ignored' | 'dead' | 'quarantined',
    source: string | null,
    reason: string,
  ): void
  /** The message gives no payload, and names no device. */
  unnamed(result: Extract<MapResult, { reason: string }>): void
}

/** The values of the counters of a source, at their places; none for one that is not there. */
export type ReadCounters = {
  values: number[]
  /** Beside each of them: reads what the device wrote for it. */
  reads: (readonly ReadWritten[])[]
}

/** The record at hand, as those see it who read and judge its values (read/reading.ts). */
export type RecordContext = Place & {
  /** The first byte of the message that is not UTF-8, from 1 on; 0 where all of it is. */
  readonly badByteAt: number
  readonly sender: Sender
  /** The sender of the record; null for a record of several messages. */
  readonly recordSender: Sender | null
  /** Of the message (MQTT 5); null where it has none. */
  readonly userProperties: UserProperties | null
  readonly properties: MessageProperties | null
  readonly arrivedAt: EpochMs
  /** True time minus `arrivedAt`; null while our own time is unknown: then no device time is judged by it. */
  readonly offsetMs: number | null

  /** Rejects the record with a reason of the mapping. */
  refuse(reason: UnmappableReason, detail: string): null
  quarantine(reason: QuarantineReason, detail: string): null
  /** Leaves out a field and counts it; `key` is `source|field|why`. `ofDevice`: the same for its device. */
  omit(key: string, ofDevice?: string): undefined
  /** Counts a value that is not plausible (plausibility/plausibility.ts). */
  implausible(finding: Finding, value: number): void
  /** Whether a value of the record was left out because it is not plausible, or a placeholder. */
  leftOut: boolean
  /** Fields of the source, as bits (lost-fields/watched-fields.ts): those that the record has. */
  present: number
  /** Those that were read of it; the others may be there. */
  judged: number
  /** Those that are not read: a message that is kept for a lost field was sent with them. */
  unwanted: number

  /** Set by the position, where motion follows from it; null where it has none. */
  speed: number | null
  /** Set by the signals; null where the source has no counters. */
  readonly counters: ReadCounters | null
  /** Set by the position: it was 0, 0, or another that means none. */
  zeroPosition: boolean
  /** Set by the position. */
  latitude: number
  longitude: number
}

/** What is counted of a value that is not plausible. Made when the source was compiled. */
export type Finding = {
  /** `source|field|why` */
  readonly key: string
  /** Sent nevertheless, by the config. */
  readonly isSent: boolean
  /** The rule in words, for an explanation. */
  readonly rule: string
}

/** The result of decoding the bytes of a message. */
export type Decoded =
  /**
   * `omitted`: values that were left out, as `field|why` each. `badByteAt`: the first byte, from 1 on, that
   * is not UTF-8; texts have U+FFFD there. `broken`: texts in the list that could not be read, and why.
   * `flagged`: what is doubtful of the whole, as `field|why`; it is read nevertheless.
   */
  | {
      kind: 'value'
      value: unknown
      omitted?: readonly string[]
      badByteAt?: number
      broken?: ReadonlyMap<string, string>
      flagged?: string
    }
  | { kind: 'empty' }
  /** Not telemetry, such as a login packet. `reason` is one of a bounded set of texts. */
  | { kind: 'ignored'; reason: string }
  | { kind: 'refused'; reason: DecodeFault; detail: string }

/** Turns the bytes of a message into the value that paths are read from. Total: no bytes make it throw. */
export type Decode = (bytes: Buffer, limits?: BodyLimits) => Decoded

/**
 * One entry of the state that the spool keeps. Null deletes. The last of several writes of a key counts. With
 * `isWaiting` the value is read when the spool closes the group of messages: once for all of them, with what
 * all of them changed. The spool sets it until then. It keeps the object and may read the value again later,
 * so that changes only where it is put. Such a `value` is made when it is read, and valid until that of
 * another entry is read.
 */
export type StateWrite =
  | { readonly key: string; readonly value: Buffer | null; isWaiting?: undefined }
  | { readonly key: string; readonly value: Buffer; isWaiting: boolean }

/** A command that asks a device to publish its definitions again: `bytes` are to be published to `topic`. */
export type RebirthRequest = { topic: string; bytes: Buffer }

/** The result of a decoder with state for a message. */
export type StatefulDecoded = Decoded & {
  /** Changes of the durable memory, to be committed with this message, whatever its records become. */
  writes?: readonly StateWrite[]
  rebirth?: RebirthRequest
}

/**
 * Decodes the messages of one topic. Total. Without `live` (a message that was kept is mapped again) the
 * memory is used and not changed.
 */
export type DecodeWithMemory = (bytes: Buffer, arrivedAt: EpochMs, live: boolean) => StatefulDecoded

/** A decoder whose messages explain each other. One for each source. */
export type StatefulDecoder = {
  /** The decoder for a topic, which is kept as long as the topic is in use. */
  forTopic(topic: string): DecodeWithMemory
  /** Forgets everything and starts from these entries; ignores entries of others. */
  restore(entries: Iterable<readonly [key: string, value: Buffer]>): void
  counters(): Readonly<Record<string, number>>
}

/** How messages are written: an entry of the table in encodings/encodings.ts. */
export type Encoding = {
  /** For the reference of the config: what the value looks like. */
  description: string
  /** It reads text, which may be in another charset. */
  isText?: boolean
} & (
  | { decode: Decode; createDecoder?: never; stateKeyPrefix?: never }
  | {
      decode?: never
      /** Messages must arrive in the order in which they were sent. */
      createDecoder(options: { source: string; limits?: BodyLimits }): StatefulDecoder
      /** The keys of its state begin so. */
      stateKeyPrefix: string
    }
)

/** Messages that were acknowledged as parts and end without a payload. */
export type UnsentPart = { kind: 'ignored'; source: string; reason: string; messages: number } | UnmappedPart

/** Becomes a dead letter or is quarantined. `message` has all values and can be mapped again. */
export type UnmappedPart = {
  kind: 'unmappable' | 'quarantined'
  source: string | null
  provider: ProviderName | null
  device: string | null
  reason: string
  detail: string
  messages: number
  message: Message
}

export type StateChanges = {
  payloads: readonly MappedPayload[]
  writes: readonly StateWrite[]
  /** Messages that ended as these payloads. */
  closed: number
  unsent: readonly UnsentPart[]
}

/** The device of a record. */
type Owned = { readonly entry: { readonly device: string; readonly provider: ProviderName } }

/**
 * What a message becomes. `source`: the name of the source. `writes`, `rebirth`: as in StatefulDecoded.
 *
 * Each record of a message of several vehicles stands alone: `rest` has those that are kept, where others
 * became something else. One entry for all records that are kept in one place for one reason.
 */
export type MapResult = {
  /**
   * Where the message is kept as a whole instead: undoes what its records noted for later ones. Before the
   * next message.
   */
  undo?(): void
  writes?: readonly StateWrite[] | undefined
  rebirth?: RebirthRequest | undefined
  rest?: readonly KeptResult[] | undefined
} & (
  | { kind: 'payloads'; source: string; payloads: readonly MappedPayload[] }
  /** `reason` is one of a bounded set of texts. The source of a will that no source takes is ''. */
  | { kind: 'ignored'; source: string; reason: string }
  /**
   * It waits for others once `apply` was called: once, before the next message, and not for a duplicate.
   */
  | {
      kind: 'part'
      source: string
      windowKey: string
      duplicateRule: DuplicateRule
      records: readonly Owned[]
      apply(): StateChanges
    }
  | KeptResult
)

/**
 * What is kept whole. `records`: only these records of it are meant. `isTimed`: each of them has a device
 * time, so the same message again is no other reading.
 */
export type KeptResult = { records?: readonly RecordMark[]; isTimed?: boolean } &
  /** Until the device is listed, or a person has decided about its clock. */
  (
    | {
        kind: 'quarantined'
        source: string
        provider: ProviderName
        device: string
        /** Of the records, where they are of several devices. */
        devices?: readonly string[]
        reason: QuarantineReason
        detail: string
        windowKey: string
      }
    /**
     * It becomes a dead letter. `reason` is a stable upper-case word (`NO_SOURCE`, `NOT_JSON`, ...), `detail`
     * a sentence. `windowKey` names this very message (client, topic, bytes).
     */
    | {
        kind: 'unmappable'
        source: string | null
        device: string | null
        /** Of the records, where they are of several devices or not all of them name one. */
        devices?: readonly string[]
        reason: string
        detail: string
        windowKey: string
        /** A copy of what was sent in part: see RecordMark. */
        isCopy?: boolean
        /** It is of no listed device: source or device is not known, or a device table lacks the device. */
        unlisted?: boolean
      }
  )
