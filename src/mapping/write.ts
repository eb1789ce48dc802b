// write.ts: the only writer of payloads. The name of a record is made of all its values, and the payload is
// written of them without those that are withheld. So a duplicate has the payloadId of its original, whatever
// is remembered of its device and whatever the privacy profile of its asset says (identity.ts).

import type { ProviderName } from '../domain/ids.ts'
import { payloadHead, type DuplicateRule, type MappedPayload } from '../domain/payload.ts'
import type { EpochMs } from '../std/clock.ts'
import type { DeviceEntry } from './devices/devices.ts'
import { signalsText } from './fields/signals.ts'
import { digestOf, payloadIdOf, signalIdHeadOf, windowKeyOf } from './identity.ts'

/** A record after mapping, before it is a payload. Stored as JSON in this order of keys. */
export type MappedRecord = {
  source: string
  device: string
  /** Null for a message without a time of its own: then `arrivedAt` applies. */
  time: EpochMs | null
  arrivedAt: EpochMs
  /** `,"gps":{...}` or ''. */
  gps: string
  /** Each signal after its id: `","type":...}`. */
  signals: readonly string[]
  /** Extra fields, `,"name":...` each, or ''. */
  fields: string
  /** Motion derived from the speed, which is not part of the payloadId; null where it was not derived. */
  moving: boolean | null
  provider: ProviderName
  /** Parts that have a share in the payloadId and are not sent, by what is remembered of the device. */
  withheld?: Withheld
}

/** `signals`: those of `signals` that are not sent, as they are there. */
export type Withheld = { gps: boolean; signals: readonly string[] }

/** A mapped record, and what is known of its device. */
export type DeviceRecord = {
  entry: DeviceEntry
  mapped: MappedRecord
  /** What reads previous values, which has no part in the payloadId. No state has it. */
  later?: Pick<MappedRecord, 'signals' | 'fields'> | null
}

/** Decides whether a payload is a duplicate: see domain/payload.ts. */
export type Identity = { windowKey: string; duplicateRule: DuplicateRule }

const arrivalMark = ',"arrival"]'

/** `timeMark`: what stands behind the time, and says which time it is. */
export function nameOf({ entry, mapped }: DeviceRecord, timeMark?: string): string {
  const { time, arrivedAt, gps, signals, fields } = mapped
  let name = `${entry.nameHead}${time ?? arrivedAt}${timeMark ?? (time === null ? arrivalMark : ']')}${gps}`
  for (const signal of signals) name += signal
  return name + fields
}

/**
 * The identity of a payload with a device time, or of a closed record: a record closes once, so its digest
 * identifies it even without a device time.
 */
export function identityOfDigest(digest: string): Identity {
  return { windowKey: windowKeyOf(digest), duplicateRule: 'always' }
}

/** Null where the privacy profile of the asset leaves nothing to send. `digest`: of the name. */
export function payloadOf(
  { entry, mapped, later }: DeviceRecord,
  digest: string,
  identity = identityOfDigest(digest),
): MappedPayload | null {
  const time = mapped.time ?? mapped.arrivedAt
  const { withhold } = entry
  const own = sentSignals(mapped)
  const whole = {
    gps: sentGps(mapped),
    signals: later ? [...own, ...later.signals] : own,
    fields: later ? mapped.fields + later.fields : mapped.fields,
  }
  const parts = withhold === null ? whole : withhold(withoutGaps(whole), time)
  if (parts === null) return null
  const payloadId = payloadIdOf(digest)
  const ids = parts.signals.length === 0 ? '' : signalIdHeadOf(digest)
  return {
    provider: entry.provider,
    device: entry.device,
    deviceTime: mapped.time,
    payloadId,
    ...identity,
    json:
      payloadHead +
      payloadId +
      entry.jsonBeforeTime +
      time +
      entry.jsonAfterTime +
      parts.gps +
      signalsText(parts.signals, ids) +
      parts.fields +
      '}',
  }
}

/** Of a record that is complete: the only one of its name. */
export function payloadOfName(record: DeviceRecord): MappedPayload | null {
  return payloadOf(record, digestOf(nameOf(record)))
}

function sentGps({ gps, moving, withheld }: MappedRecord): string {
  if (withheld?.gps === true) return ''
  return moving === null || gps === '' ? gps : `${gps.slice(0, -1)},"inMotion":${moving}}`
}

/** A signal that is withheld leaves a gap, so that the others keep their ids. */
export function sentSignals({ signals, withheld }: MappedRecord): readonly string[] {
  if (withheld === undefined || withheld.signals.length === 0) return signals
  return signals.map((signal) => (withheld.signals.includes(signal) ? '' : signal))
}

function withoutGaps<Parts extends { signals: readonly string[] }>(parts: Parts): Parts {
  return { ...parts, signals: parts.signals.filter((signal) => signal !== '') }
}
