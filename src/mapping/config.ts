// config.ts: the sections `sources`, `devices`, `defaults`, `clocks` and `privacy` of the configuration.

import { z } from 'zod'
import { duration } from '../std/schema.ts'
import { text } from './source-config/map-config.ts'
import { defaultsSchema, sourceSchema } from './source-config/source-config.ts'

export { casesSchema, type CasesFile } from './cases/cases.ts'
export { compileSources } from './compile/compile.ts'
export { defaultsSchema } from './source-config/source-config.ts'
export { expandPresets, presetNameOf, presetSchema } from './source-config/preset-merge.ts'

export const sourcesSchema = z
  .array(sourceSchema)
  .min(1)
  .max(1000)
  .describe('Where messages come from and how they are read; the first that matches a topic takes it.')

export const devicesSchema = z
  .strictObject({
    file: text(4096)
      .optional()
      .describe(
        'CSV table of devices, relative to this file; UTF-8, the first row names the columns: device, asset_id, ' +
          'asset_type, operator, carrier, provider, manufacturer, model, privacy. Only `device` is required. Bad ' +
          'rows stop the start, all of them reported by line; in a running daemon the table before stays in force.',
      ),
    unknown: z
      .enum(['accept', 'quarantine', 'ignore'])
      .default('accept')
      .describe(
        'Devices that are not in the table: `accept` sends them with the defaults and their own name as asset, ' +
          '`ignore` counts and drops their messages, `quarantine` keeps them whole until the device is listed.',
      ),
    identify: z
      .enum(['asset', 'device', 'both'])
      .default('both')
      .describe(
        'Which identifiers a payload carries: `assetIdentifier`, `deviceIdentifier`, or both. A device without ' +
          'an asset id in the table is its own asset.',
      ),
  })
  .prefault({})
  .describe('Which asset, operator and carrier a device belongs to.')

export const clocksSchema = z
  .strictObject({
    future_max: duration({ minMs: 1000, maxMs: 365 * 86_400_000 })
      .prefault('5m')
      .describe('How far a device time may lie ahead of ours. Beyond, `on_future` says what happens.'),
    on_future: z
      .enum(['quarantine', 'restamp', 'accept'])
      .default('quarantine')
      .describe(
        'What becomes of a payload from the future, and of one whose device clock was never set (1970, 1980, 2000, ' +
          'after 2099): `quarantine` keeps its message whole, `restamp` sends it with the arrival time, `accept` as it is. ' +
          'Nothing of it happens while our own time is unknown. Old device times are always accepted and counted.',
      ),
  })
  .prefault({})
  .describe('What to make of the times that devices send.')

const withheld = ['speed', 'odometer', 'hours'] as const

const profile = z.strictObject({
  round: z
    .int()
    .min(0)
    .max(6)
    .optional()
    .describe('Decimals of coordinates: 2 is about a kilometre, 1 about ten.'),
  hide: z
    .array(z.enum(withheld))
    .max(3)
    .default([])
    .describe('Never sent: `speed` (with heading and motion), `odometer`, `hours`.'),
  hours: text(256)
    .meta({ examples: ['Mon-Fri 06:00-18:00; Sat 08:00-12:00'] })
    .optional()
    .describe('Working hours. Without it all hours are.'),
  zone: text(64).default('UTC').describe('Time zone of `hours`, such as Europe/Paris.'),
  outside: z
    .enum(['drop', 'coarse'])
    .default('drop')
    .describe(
      'Beyond the working hours: nothing is sent, or only a position with one decimal (about ten kilometres).',
    ),
})

export const privacySchema = z
  .strictObject({
    profiles: z
      .record(text(64), profile)
      .default({})
      .describe('Profiles by name; the column `privacy` of the device table names one.'),
  })
  .prefault({})
  .describe('What is withheld of assets whose drivers have a right to it.')

export type { FieldConfig, ExtraFieldConfig, MapConfig, SignalConfig } from './source-config/map-config.ts'
export type { SourceConfig } from './source-config/source-config.ts'
export type ClocksConfig = z.output<typeof clocksSchema>
export type PrivacyConfig = z.output<typeof privacySchema>

/** What the mapping is compiled from: sources whose presets are put in. */
export type MappingConfig = {
  sources: z.output<typeof sourcesSchema>
  devices: z.output<typeof devicesSchema>
  defaults: z.output<typeof defaultsSchema>
  clocks: ClocksConfig
  privacy: PrivacyConfig
}
