// record-payload.ts: makes a payload of a mapped record: the only place that writes one. The payloadId is
// made (identity.ts) before privacy, and without values derived from memory. So a duplicate has the payloadId
// of its original, whatever happened in between.

import { payloadHead, type DuplicateRule, type MappedPayload } from '../../domain/payload.ts'
import { digestOf, payloadIdOf, signalIdHeadOf, windowKeyOf } from '../identity.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import { signalsText } from '../fields/signals.ts'
import type { MappedRecord } from './merge.ts'
import type { DeviceRecord } from './source-state.ts'
import type { Withhold } from '../privacy/privacy.ts'
import type { ThinSample } from './thin.ts'

/** Decides whether a payload is a duplicate: see domain/payload.ts. */
export type Identity = { windowKey: string; duplicateRule: DuplicateRule }

/** `mark` distinguishes two records of one message with the same content. */
export function digestOfRecord(entry: DeviceEntry, mapped: MappedRecord, mark = ''): string {
  const { time, arrivedAt, gps, signals, fields } = mapped
  let name = `${entry.nameHead}${time ?? arrivedAt}${time === null ? ',"arrival"]' : ']'}${gps}`
  for (const signal of signals) name += signal
  return digestOf(name + fields + mark)
}

/**
 * The identity of a payload with a device time, or of a closed record: a record closes once, so its digest
 * identifies it even without a device time.
 */
export function identityOfDigest(digest: string): Identity {
  return { windowKey: windowKeyOf(digest), duplicateRule: 'always' }
}

/** Null where the privacy profile of the asset leaves nothing to send. */
export function payloadOf(
  { entry, mapped, later }: DeviceRecord,
  digest: string,
  identity: Identity,
  withhold: Withhold | null,
): MappedPayload | null {
  const time = mapped.time ?? mapped.arrivedAt
  const whole = {
    gps: sentGps(mapped),
    signals: later ? [...sentSignals(mapped), ...later.signals] : sentSignals(mapped),
    fields: mapped.fields + (later?.fields ?? ''),
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

function sentGps({ gps, moving, withheld }: MappedRecord): string {
  if (withheld?.gps === true) return ''
  return moving === null || gps === '' ? gps : `${gps.slice(0, -1)},"inMotion":${moving}}`
}

/** A signal that is withheld leaves a gap, so that the others keep their ids. */
function sentSignals({ signals, withheld }: MappedRecord): readonly string[] {
  if (withheld === undefined || withheld.signals.length === 0) return signals
  return signals.map((signal) => (withheld.signals.includes(signal) ? '' : signal))
}

function withoutGaps<Parts extends { signals: readonly string[] }>(parts: Parts): Parts {
  return { ...parts, signals: parts.signals.filter((signal) => signal !== '') }
}

/** The values that thinning compares. */
export function thinSampleOf(mapped: MappedRecord, identity: Identity, resent: boolean): ThinSample {
  return {
    device: mapped.device,
    shape: shapeOf(mapped),
    time: mapped.time ?? mapped.arrivedAt,
    windowKey: identity.windowKey,
    resent,
    ...positionOf(mapped),
    values: sentSignals(mapped).join('') + mapped.fields,
  }
}

type Position = Pick<ThinSample, 'latitude' | 'longitude' | 'heading' | 'moving'>

function positionOf({ gps, moving, withheld }: MappedRecord): Position {
  if (gps === '' || withheld?.gps === true)
    return { latitude: Number.NaN, longitude: Number.NaN, heading: Number.NaN, moving: null }
  const { latitude, longitude, heading, inMotion } = JSON.parse(gps.slice(',"gps":'.length)) as {
    latitude: number
    longitude: number
    heading?: number
    inMotion?: boolean
  }
  return { latitude, longitude, heading: heading ?? Number.NaN, moving: inMotion ?? moving }
}

function shapeOf({ gps, signals }: MappedRecord): string {
  let shape = gps === '' ? '' : 'gps'
  for (const signal of signals) shape += signal.slice(0, signal.indexOf('","value":'))
  return shape
}
