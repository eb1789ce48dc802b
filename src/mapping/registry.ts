// registry.ts: the part of a payload that depends on the device alone, as text, worked out once per device.

import { defaultProvider, type ProviderName } from '../domain/ids.ts'
import { createCache, type CacheCounters } from './cache.ts'
import type { DeviceRow, DeviceTable } from './devices.ts'
import { jsonString } from './text.ts'

/** What stands in for an empty field of the device table. */
export type Defaults = {
  readonly carrier?: string | undefined
  readonly operator?: string | undefined
  readonly asset_type?: string | undefined
  readonly manufacturer?: string | undefined
  readonly model?: string | undefined
}

export type RegistryOptions = {
  defaults: Defaults
  unknown: 'accept' | 'ignore'
  /** Which identifiers a payload carries (ingestion-api.md 2.1, rule 2). */
  identify: 'asset' | 'device' | 'both'
}

export type DeviceEntry = {
  readonly device: string
  readonly provider: ProviderName
  /** The device is not in the table, and the config says to ignore such devices. */
  readonly ignored: boolean
  /** Begin of a payload's name: provider and device, see identity.ts. */
  readonly nameHead: string
  /** Between the payloadId and the value of `signalTimestamp`. */
  readonly jsonBeforeTime: string
  /** Behind the value of `signalTimestamp`. */
  readonly jsonAfterTime: string
}

export type Registry = {
  entryOf(device: string): DeviceEntry
  counters(): CacheCounters
}

export function createRegistry(
  { devices }: { devices: DeviceTable },
  options: RegistryOptions & { entriesMax: number },
): Registry {
  const entries = createCache<DeviceEntry>(options.entriesMax)
  return { entryOf, counters: () => entries.counters() }

  function entryOf(device: string): DeviceEntry {
    const known = entries.get(device)
    if (known) return known
    const entry = makeEntry(device, devices.find(device), options)
    entries.set(device, entry)
    return entry
  }
}

function makeEntry(device: string, row: DeviceRow | undefined, options: RegistryOptions): DeviceEntry {
  const { defaults, identify } = options
  const provider = row?.provider ?? defaultProvider
  const carrier = row?.carrier ?? defaults.carrier
  const asset = objectOf([
    ['id', row?.asset_id ?? device],
    ['type', row?.asset_type ?? defaults.asset_type],
    ['operator', row?.operator ?? defaults.operator],
  ])
  const unit = objectOf([
    ['id', device],
    ['manufacturer', row?.manufacturer ?? defaults.manufacturer],
    ['model', row?.model ?? defaults.model],
  ])
  return {
    device,
    provider,
    ignored: row === undefined && options.unknown === 'ignore',
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
