// devices.ts: the parts of payloads that depend only on the device. They are made once for each device and
// cached.
//
//   device table (device-table.ts) > defaults of the source > defaults of the config > the device name itself
//
// An entry says whether messages of the device are mapped, ignored or quarantined, for which provider, and
// holds the text of its identifiers. Which device a record is about: device-rule.ts.
// Whether its time can be right: device-clocks.ts. A changed table makes a new mapper, so
// entries never become stale; forgotten ones are made again.

import { defaultProvider, type ProviderName } from '../../domain/ids.ts'
import { bothOf, createCache } from '../bounded-cache.ts'
import { createSizedCache } from '../sized-cache.ts'
import type { DeviceRow, DeviceTable } from './device-table.ts'
import type { DeviceMemory } from '../memory/device-memory.ts'
import type { Withhold } from '../privacy/privacy.ts'
import { zoneOf, type Zone } from '../times/zones.ts'
import { jsonString } from '../fields/json-string.ts'

/** Values for empty fields of the device table. */
export type Defaults = {
  readonly carrier?: string | undefined
  readonly operator?: string | undefined
  readonly asset_type?: string | undefined
  readonly manufacturer?: string | undefined
  readonly model?: string | undefined
  readonly zone?: string | undefined
}

export type DeviceEntryOptions = {
  defaults: Defaults
  unknown: 'accept' | 'ignore' | 'quarantine'
  /** Which identifiers a payload carries (ingestion-api.md 2.1, rule 2). */
  identify: 'asset' | 'device' | 'both'
  /** The family of models that a device belongs to, counted from 1; 0 for none. */
  familyOf(model: string | undefined): number
  profiles: ReadonlyMap<string, Withhold>
}

export type DeviceEntry = {
  readonly device: string
  readonly provider: ProviderName
  /** The config has the provider. */
  readonly deliverable: boolean
  /** The device is not in the table, and `devices.unknown` is `ignore`. */
  readonly ignored: boolean
  /** The device is not in the table, and `devices.unknown` is `quarantine`. */
  readonly quarantined: boolean
  readonly assetId: string
  /** The device table has it. */
  readonly listed: boolean
  readonly source: string
  readonly family: number
  /** The model that the family was looked up with; null where none is known. */
  readonly model: string | null
  /** That of times without one, for a source with `zone: device`; null where none is known. */
  readonly zone: Zone | null
  /** The privacy profile of the asset; null for most. */
  readonly withhold: Withhold | null
  /** The start of a payload's name: provider and device (identity.ts). */
  readonly nameHead: string
  /** Between the payloadId and the value of `signalTimestamp`. */
  readonly jsonBeforeTime: string
  /** After the value of `signalTimestamp`. */
  readonly jsonAfterTime: string
  /** What is remembered of the device (memory/), where it was looked up. */
  memory: DeviceMemory | null
  /** What is noted of the device (../types.ts). */
  note: object | null
  /** Positions since the entry was made: some of them are compared with the fleet. */
  positions: number
  /** Records since the entry was made. */
  records: number
}

export type DeviceEntries = ReturnType<typeof createDeviceEntries>

export function createDeviceEntries(
  { devices }: { devices: DeviceTable },
  options: DeviceEntryOptions & { source: string; providers: readonly ProviderName[]; bytesMax: number },
) {
  const entries = createSizedCache<DeviceEntry>({ bytesMax: options.bytesMax, bytesOf: bytesOfEntry })
  const refused = createCache<DeviceEntry>(refusedMax)
  let withoutFamily = 0
  const counters = () => ({ ...bothOf(entries.counters(), refused.counters()), withoutFamily })
  return { entryOf, all, counters }

  /** Those that are cached, with the provider that they were asked for with. */
  function* all(): Generator<{ entry: DeviceEntry; provider: ProviderName }> {
    for (const cache of [entries, refused])
      for (const [key, entry] of cache.entries())
        yield { entry, provider: (key.slice(entry.device.length + 1) || defaultProvider) as ProviderName }
  }

  /** `provider`: for devices without one in the table. */
  function entryOf(device: string, provider: ProviderName): DeviceEntry {
    // Usually there is one provider, and the device alone is the key.
    const key = provider === defaultProvider ? device : `${device}\0${provider}`
    const known = entries.get(key) ?? refused.get(key)
    if (known) return known
    const entry = makeEntry(device, devices.find(device), provider, options)
    if (entry.family === 0) withoutFamily += 1
    if (entry.ignored || entry.quarantined) refused.set(key, entry)
    else entries.add(key, entry)
    return entry
  }
}

/** Devices that are not in the table and not accepted: a client can invent any number of them. */
const refusedMax = 4096

/** An entry and its place in the cache, besides its texts. */
const entryBytes = 400

function bytesOfEntry(key: string, { nameHead, jsonAfterTime }: DeviceEntry): number {
  return entryBytes + 2 * key.length + nameHead.length + jsonAfterTime.length
}

function makeEntry(
  device: string,
  row: DeviceRow | undefined,
  otherwise: ProviderName,
  options: DeviceEntryOptions & { source: string; providers: readonly ProviderName[] },
): DeviceEntry {
  const { defaults, identify, unknown, source, providers } = options
  const provider = row?.provider ?? otherwise
  const assetId = row?.asset_id ?? device
  const model = row?.model ?? defaults.model
  const zone = row?.zone ?? defaults.zone
  const carrier = row?.carrier ?? defaults.carrier
  const asset = objectOf([
    ['id', assetId],
    ['type', row?.asset_type ?? defaults.asset_type],
    ['operator', row?.operator ?? defaults.operator],
  ])
  const unit = objectOf([
    ['id', device],
    ['manufacturer', row?.manufacturer ?? defaults.manufacturer],
    ['model', model],
  ])
  return {
    device,
    memory: null,
    note: null,
    positions: 0,
    records: 0,
    provider,
    deliverable: providers.includes(provider),
    ignored: row === undefined && unknown === 'ignore',
    quarantined: row === undefined && unknown === 'quarantine',
    assetId,
    listed: row !== undefined,
    source,
    family: options.familyOf(model),
    model: model ?? null,
    zone: zone === undefined ? null : zoneOf(zone),
    withhold: row?.privacy === undefined ? null : (options.profiles.get(row.privacy) ?? null),
    nameHead: flat(['[', jsonString(provider), ',', jsonString(device), ',']),
    jsonBeforeTime: jsonBeforeTime(carrier),
    jsonAfterTime: flat([
      ...(identify === 'device' ? [] : [',"assetIdentifier":', asset]),
      ...(identify === 'asset' ? [] : [',"deviceIdentifier":', unit]),
    ]),
  }
}

/** By carrier: devices have few of them, and one text is kept for all. */
const textsBeforeTime = createCache<string>(256)

function jsonBeforeTime(carrier: string | undefined): string {
  const key = carrier === undefined ? '' : jsonString(carrier)
  const known = textsBeforeTime.get(key)
  if (known !== undefined) return known
  const text = flat(['"', ...(key === '' ? [] : [',"carrier":', key]), ',"signalTimestamp":'])
  textsBeforeTime.set(key, text)
  return text
}

/**
 * V8 keeps the parts of a text that was put together with `+` or a template; `join` makes one text of them.
 */
function flat(parts: readonly string[]): string {
  return parts.join('')
}

/** A JSON object of the fields that have a value. */
function objectOf(fields: readonly (readonly [string, string | undefined])[]): string {
  const texts: string[] = []
  for (const [name, value] of fields) if (value !== undefined) texts.push(`"${name}":${jsonString(value)}`)
  return `{${texts.join(',')}}`
}
