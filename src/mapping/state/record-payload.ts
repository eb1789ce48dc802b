// record-payload.ts: what a record says, as a payload, for the sources whose records do not become one at once. The
// name is made as for all others (identity.ts), before privacy, and without what was derived from memory: a
// copy must have its original's name whatever happened in between.

import { payloadHead, type DuplicateRule, type MappedPayload } from '../../domain/payload.ts'
import { digestOf, payloadIdOf, signalIdHeadOf, windowKeyOf } from '../identity.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import { signalsText } from '../fields/signals.ts'
import type { MappedRecord } from './merge.ts'
import type { Withhold } from '../privacy/privacy.ts'
import type { ThinSample } from './thin.ts'

/** When a payload is a copy: see domain/payload.ts. */
export type Identity = { windowKey: string; duplicateRule: DuplicateRule }

/** `mark` tells apart two records of one message that say the same. */
export function digestOfRecord(entry: DeviceEntry, half: MappedRecord, mark = ''): string {
  const { time, arrivedAt, gps, signals, fields } = half
  let name = `${entry.nameHead}${time ?? arrivedAt}${time === null ? ',"arrival"]' : ']'}${gps}`
  for (const signal of signals) name += signal
  return digestOf(name + fields + mark)
}

/**
 * A payload that came out of memory: its name is its identity, even where it has no device time. The record it
 * was made of closes once.
 */
export function ownIdentity(digest: string): Identity {
  return { windowKey: windowKeyOf(digest), duplicateRule: 'always' }
}

/** Null where the asset's profile leaves nothing to send. */
export function payloadOf(
  entry: DeviceEntry,
  half: MappedRecord,
  digest: string,
  identity: Identity,
  withhold: Withhold | null,
): MappedPayload | null {
  const time = half.time ?? half.arrivedAt
  const whole = { gps: withMotion(half), signals: half.signals, fields: half.fields }
  const parts = withhold === null ? whole : withhold(whole, time)
  if (parts === null) return null
  const payloadId = payloadIdOf(digest)
  const ids = parts.signals.length === 0 ? '' : signalIdHeadOf(digest)
  return {
    provider: entry.provider,
    device: entry.device,
    deviceTime: half.time,
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

function withMotion({ gps, moving }: MappedRecord): string {
  return moving === null || gps === '' ? gps : `${gps.slice(0, -1)},"inMotion":${moving}}`
}

/** What thinning looks at. */
export function sampleOf(half: MappedRecord, identity: Identity, resent: boolean): ThinSample {
  const place = placeIn(half)
  const values = half.signals.join('') + half.fields
  return {
    device: half.device,
    shape: shapeOf(half),
    time: half.time ?? half.arrivedAt,
    windowKey: identity.windowKey,
    resent,
    ...place,
    values,
  }
}

type Place = { latitude: number; longitude: number; heading: number; moving: boolean | null }

function placeIn({ gps, moving }: MappedRecord): Place {
  if (gps === '') return { latitude: Number.NaN, longitude: Number.NaN, heading: Number.NaN, moving: null }
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
