// devices.ts: the part of a payload that depends on the device alone, as text, worked out once per device.

import { defaultProvider, type ProviderName } from '../../domain/ids.ts'
import { createCache, type CacheCounters } from '../bounded-cache.ts'
import type { DeviceRow, DeviceTable } from './device-table.ts'
import type { Withhold } from '../privacy/privacy.ts'
import { jsonString } from '../fields/json-string.ts'

/** What stands in for an empty field of the device table. */
export type Defaults = {
  readonly carrier?: string | undefined
  readonly operator?: string | undefined
  readonly asset_type?: string | undefined
  readonly manufacturer?: string | undefined
  readonly model?: string | undefined
}

export type DeviceEntryOptions = {
  defaults: Defaults
  unknown: 'accept' | 'ignore' | 'quarantine'
  /** Which identifiers a payload carries (ingestion-api.md 2.1, rule 2). */
  identify: 'asset' | 'device' | 'both'
  /** Which family of models a device belongs to, counted from 1; 0 where it belongs to none. */
  familyOf(model: string | undefined): number
  profiles: ReadonlyMap<string, Withhold>
}

export type DeviceEntry = {
  readonly device: string
  readonly provider: ProviderName
  /** The config has the provider: its payloads have somewhere to go. */
  readonly deliverable: boolean
  /** The device is not in the table, and the config says to ignore such devices. */
  readonly ignored: boolean
  /** The device is not in the table, and the config says to keep its messages until it is. */
  readonly quarantined: boolean
  readonly assetId: string
  readonly family: number
  /** What must not be sent of it; null for nearly all. */
  readonly withhold: Withhold | null
  /** Begin of a payload's name: provider and device, see identity.ts. */
  readonly nameHead: string
  /** Between the payloadId and the value of `signalTimestamp`. */
  readonly jsonBeforeTime: string
  /** Behind the value of `signalTimestamp`. */
  readonly jsonAfterTime: string
}

export type DeviceEntries = {
  /** `provider` counts where the table names none. */
  entryOf(device: string, provider: ProviderName): DeviceEntry
  counters(): CacheCounters & { withoutFamily: number }
}

export function createDeviceEntries(
  { devices }: { devices: DeviceTable },
  options: DeviceEntryOptions & { providers: readonly ProviderName[]; entriesMax: number },
): DeviceEntries {
  const entries = createCache<DeviceEntry>(options.entriesMax)
  let withoutFamily = 0
  return { entryOf, counters: () => ({ ...entries.counters(), withoutFamily }) }

  function entryOf(device: string, provider: ProviderName): DeviceEntry {
    // Nearly always there is one provider, and the device alone is the key.
    const key = provider === defaultProvider ? device : `${device}\0${provider}`
    const known = entries.get(key)
    if (known) return known
    const entry = makeEntry(device, devices.find(device), provider, options)
    if (entry.family === 0) withoutFamily += 1
    entries.set(key, entry)
    return entry
  }
}

function makeEntry(
  device: string,
  row: DeviceRow | undefined,
  otherwise: ProviderName,
  options: DeviceEntryOptions & { providers: readonly ProviderName[] },
): DeviceEntry {
  const { defaults, identify, unknown, providers } = options
  const provider = row?.provider ?? otherwise
  const assetId = row?.asset_id ?? device
  const model = row?.model ?? defaults.model
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
    provider,
    deliverable: providers.includes(provider),
    ignored: row === undefined && unknown === 'ignore',
    quarantined: row === undefined && unknown === 'quarantine',
    assetId,
    family: options.familyOf(model),
    withhold: row?.privacy === undefined ? null : (options.profiles.get(row.privacy) ?? null),
    nameHead: `[${jsonString(provider)},${jsonString(device)},`,
    jsonBeforeTime: `"${carrier === undefined ? '' : `,"carrier":${jsonString(carrier)}`},"signalTimestamp":`,
    jsonAfterTime:
      (identify === 'device' ? '' : `,"assetIdentifier":${asset}`) +
      (identify === 'asset' ? '' : `,"deviceIdentifier":${unit}`),
  }
}

/** A JSON object of the fields that have a value. */
function objectOf(fields: readonly (readonly [string, string | undefined])[]): string {
  const texts: string[] = []
  for (const [name, value] of fields) if (value !== undefined) texts.push(`"${name}":${jsonString(value)}`)
  return `{${texts.join(',')}}`
}
