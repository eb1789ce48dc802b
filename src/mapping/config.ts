// config.ts: the sections `sources`, `devices` and `defaults` of the configuration.

import { z } from 'zod'
import { angleUnits, signalUnits, speedUnits } from './units.ts'
import { timeFormats } from './time.ts'

export { compileSources } from './compile.ts'

const text = (lengthMax: number) => z.string().min(1).max(lengthMax)

const path = () =>
  text(1024)
    .meta({ examples: ['gps.lat', '"position.latitude"', 'records[0].speed'] })
    .optional()
    .describe(
      'Where the value stands in the message: keys joined by dots; a key with dots, blanks or brackets in ' +
        'quotes; `[0]` and `[-1]` for elements of a list; `$first()` for the value of the first key; a ' +
        'leading `$.` starts at the message itself where `each` chose a part of it. Give either this or ' +
        '`value`.',
    )

/** The keys of zod's enumeration, in their order. */
const unitsOf = <Unit extends string>(units: Readonly<Record<Unit, unknown>>) =>
  z.enum(Object.keys(units) as [Unit, ...Unit[]])

const scaling = {
  scale: z
    .number()
    .refine((value) => value !== 0, 'must not be 0')
    .default(1)
    .describe(
      'The value is multiplied by this before its unit is converted, such as 0.01 for steps of 10 m.',
    ),
  offset: z.number().default(0).describe('Added after scale and unit, so it is in the unit that is sent.'),
}

const constant = 'A constant instead of a path; scale and unit apply to it as to a value of the message.'
const instead = 'Stands in where the message has no such value; never where it has one that cannot be used.'

function numberField(units: z.ZodType<string | undefined>, about: string) {
  return z
    .strictObject({
      path: path(),
      value: z.number().optional().describe(constant),
      default: z.number().optional().describe(instead),
      unit: units,
      ...scaling,
    })
    .optional()
    .describe(about)
}

const angle = () =>
  unitsOf(angleUnits).default('deg').describe('What the message has it in: deg, 1e-7deg, 0.01deg or rad.')

const time = z
  .strictObject({
    path: path(),
    format: z
      .enum(timeFormats)
      .describe(
        'How it is written. `s` (also with fractions, `s-float`), `ms`, `us` since 1970; `iso` ' +
          '2024-05-13T05:46:12.280Z; `datetime` 2024-05-13 05:46:12 in UTC; `compact` 20240513054612 in UTC; ' +
          '`auto` seconds or milliseconds by their size; `arrival` for messages without a time.',
      ),
    zone: z
      .enum(['utc'])
      .optional()
      .describe('For `iso` without a zone: `utc` says that it is UTC. Without this such a time is refused.'),
    missing: z
      .enum(['refuse', 'arrival'])
      .default('refuse')
      .describe(
        'What to do with a message that has no time: keep it as a dead letter (NO_TIME), or send it with its ' +
          'arrival time. A time that cannot be read is always refused.',
      ),
  })
  .optional()
  .describe(
    'When it was measured; becomes `signalTimestamp`. Without it every message gets its arrival time, and only a ' +
      'resend that the device marks as one (DUP) is recognised as a copy.',
  )

const inMotion = z
  .strictObject({
    path: path(),
    value: z.boolean().optional().describe('A constant instead of a path.'),
    default: z.boolean().optional().describe(instead),
    from: z
      .enum(['speed'])
      .optional()
      .describe('Derives it from the speed of the same message instead of a path.'),
    above: z
      .number()
      .min(0)
      .max(1000)
      .optional()
      .describe('With `from: speed`: moving above this speed, in the unit that is sent (km/h).'),
  })
  .optional()
  .describe(
    'Whether the asset moves. Read from the message (true, 1, "yes", "on" and their opposites) or derived from ' +
      'the speed; without this it is not sent.',
  )

const signal = z.strictObject({
  type: text(100)
    .meta({ examples: ['OBD_LIFETIME_ODOMETER', 'OBD_TOTAL_ENGINE_TIME'] })
    .describe(
      'Type of the signal. Only what the vehicle itself counts over its life is a lifetime odometer.',
    ),
  path: path(),
  value: z
    .union([z.number(), text(40)])
    .optional()
    .describe(constant),
  default: z
    .union([z.number(), text(40)])
    .optional()
    .describe(instead),
  unit: unitsOf(signalUnits)
    .optional()
    .describe(
      'What the message has it in: km, m, mi become KILOMETERS; h, min, s, ms become HOURS, rounded to six ' +
        'places where need be. Without it the value is sent as it is.',
    ),
  ...scaling,
  value_unit: text(100)
    .optional()
    .describe(
      'The unit that is named to the service. By default KILOMETERS or HOURS, by `unit` or the type; free for ' +
        'values without `unit`.',
    ),
  part: text(100)
    .meta({ examples: ['ENGINE'] })
    .optional()
    .describe('The part of the asset (`assetPart`).'),
})

const map = z
  .strictObject({
    time,
    latitude: numberField(
      angle(),
      'Latitude in degrees north. Beyond 90 or no number: the message becomes a dead letter.',
    ),
    longitude: numberField(
      angle(),
      'Longitude in degrees east. Beyond 180 or no number: the message becomes a dead letter.',
    ),
    speed: numberField(
      unitsOf(speedUnits).optional().describe('What the message has it in; km/h where it is not said.'),
      'Speed. Below zero or no number: left out and counted.',
    ),
    speed_units: text(100)
      .default('KILOMETERS_PER_HOUR')
      .describe('The unit that is named to the service. Another word sends speed as it is, without `unit`.'),
    heading: numberField(
      angle(),
      'Heading in degrees. 360 is sent as 0; outside of 0 to 360 it is left out and counted.',
    ),
    in_motion: inMotion,
    signals: z
      .array(signal)
      .max(256)
      .default([])
      .describe('Odometer, engine hours and other values, sent as decimal texts without rounding error.'),
  })
  .describe('Which value of a message becomes which field. A field that a message does not have is left out.')

export const defaultsSchema = z
  .strictObject({
    carrier: text(256).optional().describe('Carrier, where the device table has none.'),
    operator: text(256).optional().describe('Operator of the asset, where the device table has none.'),
    asset_type: text(256)
      .meta({ examples: ['TRACTOR'] })
      .optional()
      .describe('Type of the asset, where the device table has none.'),
    manufacturer: text(256)
      .optional()
      .describe('Manufacturer of the device, where the device table has none.'),
    model: text(256).optional().describe('Model of the device, where the device table has none.'),
  })
  .prefault({})
  .describe('What stands in for empty fields of the device table and for devices that are not in it.')

const source = z.strictObject({
  name: text(64).describe('Name in counters, dead letters and messages to you; each source needs its own.'),
  topic: z
    .string()
    .meta({ examples: ['telemetry/v1/{device}', '/hfp/v2/journey/+/{event}/#'] })
    .describe(
      'MQTT topic filter. A level written {name} is captured: {device} names the device. Of several sources that ' +
        'match, the first takes the message; a message that no source takes becomes a dead letter (NO_SOURCE).',
    ),
  encoding: z.enum(['json']).default('json').describe('How the message is written.'),
  retained: z
    .enum(['take', 'ignore'])
    .default('take')
    .describe(
      'What to do with a message whose retain flag is set. A device that asks a broker to retain its message ' +
        'sends it as live data; a subscription to another broker replays old ones with it.',
    ),
  device: z
    .union([
      text(512),
      z.strictObject({ path: text(1024).describe('Where its name stands in the message.') }),
    ])
    .optional()
    .describe(
      'What names the device: a template over the captures of the topic and {clientid}, {username}, {certificate}, ' +
        'such as "{operator}/{vehicle}", or `{ path: imei }`. Default: {device}. Without a name the ' +
        'message becomes a dead letter (NO_DEVICE).',
    ),
  each: text(1024)
    .optional()
    .describe(
      'A path to the part of the message that all other paths start from. Where it is a list, each element makes ' +
        'a payload (at most 1,000); if one of them cannot be mapped, the whole message becomes a dead letter.',
    ),
  when: text(1024)
    .meta({ examples: ['lat != null and sat >= 3', '{event} == "vp"'] })
    .optional()
    .describe(
      'Condition. Where it does not hold, the message is ignored and counted. == != < <= > >=, and, or, not, ' +
        'brackets, exists(path), paths, {captures}, numbers, "texts", true, false, null (also for what is absent).',
    ),
  defaults: defaultsSchema.describe('As `defaults`, for this source; goes before those.'),
  map,
})

export const sourcesSchema = z
  .array(source)
  .min(1)
  .max(1000)
  .describe('Where messages come from and how they are read; the first that matches a topic takes it.')

export const devicesSchema = z
  .strictObject({
    file: text(4096)
      .optional()
      .describe(
        'CSV table of devices, relative to this file; UTF-8, the first row names the columns: device, asset_id, ' +
          'asset_type, operator, carrier, provider, manufacturer, model. Only `device` is required. Bad ' +
          'rows stop the start, all of them reported by line.',
      ),
    unknown: z
      .enum(['accept', 'quarantine', 'ignore'])
      .default('accept')
      .describe(
        'Devices that are not in the table: `accept` sends them with the defaults and their own name as asset, ' +
          '`ignore` counts and drops their messages. `quarantine` is not available in this version.',
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

export type SourceConfig = z.output<typeof source>
export type FieldConfig = NonNullable<SourceConfig['map']['latitude']>
export type SignalConfig = z.output<typeof signal>

/** What the mapping is compiled from. */
export type MappingConfig = {
  sources: readonly SourceConfig[]
  devices: z.output<typeof devicesSchema>
  defaults: z.output<typeof defaultsSchema>
}
