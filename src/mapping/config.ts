// config.ts: the sections `sources`, `devices`, `defaults`, `clocks`, `privacy` and `plausibility` of the
// configuration.

import { z } from 'zod'
import { duration, filePath } from '../std/schema.ts'
import { text } from './source-config/path-options.ts'
import type { PlausibilityConfig } from './plausibility/plausibility-config.ts'
import { defaultsSchema, sourceSchema } from './source-config/source-config.ts'

export { defaultsSchema } from './source-config/source-config.ts'
export { expandPresets, presetNameOf, presetSchema } from './source-config/preset-merge.ts'

export const sourcesSchema = z
  .array(sourceSchema)
  .min(1)
  .max(1000)
  .describe(
    'Which messages are read, and how. The first source whose topic matches, and whose `when` holds, takes ' +
      'the message.',
  )

export const devicesSchema = z
  .strictObject({
    file: filePath()
      .max(4096)
      .optional()
      .describe(
        'CSV table of devices, in UTF-8. The first row names the columns: device, asset_id, asset_type, ' +
          'operator, carrier, provider, manufacturer, model, privacy, zone, muted_until. Only `device` is ' +
          'required. `muted_until` is a date, such as 2026-12-24 (from its beginning on the clock of the ' +
          'machine) or 2026-12-24T18:00Z: until then the silence of the device is no problem. If rows ' +
          'are invalid, the gateway does not start and reports all of them by line; a running daemon ' +
          'keeps the previous table.',
      ),
    unknown: z
      .enum(['accept', 'quarantine', 'ignore'])
      .default('accept')
      .describe(
        'What to do with messages of devices that are not in the table: `accept` sends them with the ' +
          'defaults and the name of the device as asset, `ignore` counts and drops them, `quarantine` keeps ' +
          'them until the device is listed.',
      ),
    identify: z
      .enum(['asset', 'device', 'both'])
      .default('both')
      .describe(
        'Which identifiers a payload has: `assetIdentifier`, `deviceIdentifier` or both. Without an asset ' +
          'id in the table, the name of the device is the asset id.',
      ),
  })
  .prefault({})
  .describe('The asset, operator and carrier of each device.')

export const clocksSchema = z
  .strictObject({
    future_max: duration({ minMs: 1000, maxMs: 365 * 86_400_000 })
      .prefault('5m')
      .describe(
        'How far a device time may be ahead of the time of the gateway. Beyond it, `on_future` applies.',
      ),
    on_future: z
      .enum(['quarantine', 'restamp', 'accept'])
      .default('quarantine')
      .describe(
        'What to do with a payload from the future, or from a device clock that was never set (1970, ' +
          '1980, 2000, after 2099): `quarantine` keeps the message, `restamp` sends it with the arrival ' +
          'time, `accept` sends it as it is. The future is not checked while the time of the gateway is ' +
          'unknown.',
      ),
    past_max: duration({ minMs: 3_600_000, maxMs: 36_500 * 86_400_000 })
      .prefault('90d')
      .describe(
        'How far a device time may be behind the time of the gateway. Beyond it, `on_past` applies: a receiver ' +
          'whose week number of GPS is wrong is 7168 days behind. Set it higher where devices send what they stored for longer.',
      ),
    on_past: z
      .enum(['quarantine', 'restamp', 'accept'])
      .default('quarantine')
      .describe(
        'What to do with a payload that is too old, as `on_future`. `quarantine release` sends what was kept. ' +
          'It is not checked while the time of the gateway is unknown.',
      ),
    trust_local: z
      .boolean()
      .default(false)
      .describe(
        'Take the clock of this machine as right. Otherwise its time is known while the operating system ' +
          'keeps the clock synchronised, or from the answers of the service. Set it where the clock is kept ' +
          'right in another way, such as GPS.',
      ),
  })
  .prefault({})
  .describe('Checks on the times that devices send.')

const withheld = ['speed', 'odometer', 'hours'] as const

const profile = z
  .strictObject({
    round: z
      .int()
      .min(0)
      .max(6)
      .optional()
      .describe(
        'Decimals of coordinates: 2 is about one kilometre, 1 about ten. Signals that have the name of a ' +
          'coordinate or place are not sent.',
      ),
    hide: z
      .array(z.enum(withheld))
      .max(3)
      .default([])
      .describe(
        'Values that are never sent: `speed` (with heading and motion), `odometer` (all distances), `hours` (all ' +
          'durations). Signals count by `quantity`, their unit and the words of their type.',
      ),
    hours: text(256)
      .meta({ examples: ['Mon-Fri 06:00-18:00; Sat 08:00-12:00'] })
      .optional()
      .describe('Working hours. Default: all hours.'),
    zone: text(64).default('UTC').describe('Time zone of `hours`, such as Europe/Paris.'),
    outside: z
      .enum(['drop', 'coarse'])
      .default('drop')
      .describe(
        'Outside of the working hours: `drop` sends nothing, `coarse` only a position with one decimal ' +
          '(about ten kilometres), without signals and extra fields.',
      ),
  })
  .describe('A privacy profile.')

export const privacySchema = z
  .strictObject({
    profiles: z
      .record(text(64), profile)
      .default({})
      .describe(
        'Privacy profiles by name. The column `privacy` of the device table names the profile of a device.',
      ),
  })
  .prefault({})
  .describe('Which data is not sent, to protect the privacy of drivers.')

export type {
  CoordinateConfig,
  NumberField,
  ExtraFieldConfig,
  MapConfig,
  SignalConfig,
} from './source-config/map-config.ts'
export type { SourceConfig } from './source-config/source-config.ts'
export { plausibilitySchema } from './plausibility/plausibility-config.ts'
export type ClocksConfig = z.output<typeof clocksSchema>
export type PrivacyConfig = z.output<typeof privacySchema>

/** The input of the compiler: sources with their presets merged in. */
export type MappingConfig = {
  sources: z.output<typeof sourcesSchema>
  devices: z.output<typeof devicesSchema>
  defaults: z.output<typeof defaultsSchema>
  clocks: ClocksConfig
  privacy: PrivacyConfig
  plausibility: PlausibilityConfig
}
