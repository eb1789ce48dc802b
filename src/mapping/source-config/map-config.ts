// map-config.ts: the option `map` of a source: which value of a message becomes which field.

import { z } from 'zod'
import { angleUnits, signalUnits, speedUnits } from '../fields/units.ts'
import { timeFormats } from '../fields/time-format.ts'

export const text = (lengthMax: number) => z.string().min(1).max(lengthMax)

/** One path, or several of which the first that finds something counts. */
export const paths = () => z.union([text(1024), z.array(text(1024)).min(1).max(64)])

const path = () =>
  paths()
    .meta({ examples: ['gps.lat', '"position.latitude"', 'records[0].speed'] })
    .optional()
    .describe(
      'Where the value stands in the message: keys joined by dots; a key with dots, blanks or brackets in ' +
        'quotes; `[0]` and `[-1]` for elements of a list; `list[id=5].val` the first object of a list whose key ' +
        'has this value; `$first()` the value of the first key; `$split(",")[0]` a part of a text; `$entries()` an ' +
        'object as a list of { key, value }; a leading `$.` starts at the message itself where `each` chose a part ' +
        'of it, `$up.` one level further out (`$up.$up.` two, as many as `each` has). A list of paths: the first that has a value. Give either this or `value`.',
    )

/** One format, or several of which the first that can read the time does. */
export const timeFormatOption = () =>
  z.union([z.enum(timeFormats), z.array(z.enum(timeFormats)).min(1).max(8)])

const absent = () =>
  z
    .array(z.union([z.number(), z.string().max(64)]))
    .max(32)
    .optional()
    .describe('Values that mean "there is none", such as -1 or "-".')

const decimalComma = () =>
  z.boolean().optional().describe('Also reads "48,85" as 48.85. Without it such a text is no number.')

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
      absent: absent(),
      decimal_comma: decimalComma(),
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
    format: timeFormatOption().describe(
      'How it is written. `s` (also with fractions, `s-float`), `ms`, `us` since 1970; `iso` ' +
        '2024-05-13T05:46:12.280Z; `datetime` 2024-05-13 05:46:12 in UTC; `compact` 20240513054612 in UTC; ' +
        '`auto` seconds or milliseconds by their size; `words` "Fri Feb 18 17:07:53 EST 2022" or ' +
        '"18-Feb-2022 17:07:52.743": English month, offset or a known zone abbreviation (EST to PDT are those of ' +
        'North America; IST, AST and others with several meanings are refused); `arrival` for messages ' +
        'without a time. A list: the first that can read it.',
    ),
    zone: z
      .enum(['utc'])
      .optional()
      .describe(
        'For `iso` and `words` without a zone: `utc` says that it is UTC. Without this such a time is refused.',
      ),
    absent: absent(),
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
    absent: absent(),
    from: z
      .enum(['speed'])
      .optional()
      .describe(
        'Derives it from the speed of the same message where the path has nothing, or there is no path.',
      ),
    above: z
      .number()
      .min(0)
      .max(1000)
      .optional()
      .describe('With `from: speed`: moving above this speed, in the unit that is sent (km/h).'),
    below: z
      .number()
      .min(0)
      .max(1000)
      .optional()
      .describe(
        'With `from: speed`: standing again at or below this speed; in between it goes on as it was. Default: as `above`.',
      ),
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
      'What the message has it in: km, m, mi and steps of 5m, 10m, 125m become KILOMETERS; h, min, s, ms, steps of 0.05h ' +
        'and `duration` ("182d2h0m0s") become HOURS, rounded to six places where need be. Without it the value is sent ' +
        'as it is.',
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
  absent: absent(),
  decimal_comma: decimalComma(),
  families: z
    .array(text(64))
    .min(1)
    .max(32)
    .optional()
    .describe('Only for devices whose model belongs to one of these `families` of the source.'),
  origin: text(64)
    .meta({ examples: ['gnss'] })
    .optional()
    .describe(
      'Where the number comes from when it is not the vehicle itself (gnss, trip, server, ignition). Such a signal is ' +
        'sent only where `origins` of the source names the word: a distance added up from positions is no odometer.',
    ),
  when: text(1024)
    .optional()
    .describe('Condition as in `when` of the source; left out where it does not hold.'),
})

const field = z.strictObject({
  path: path(),
  value: z
    .union([z.number(), z.boolean(), text(1000)])
    .optional()
    .describe('A constant instead of a path.'),
  type: z
    .enum(['number', 'text', 'boolean'])
    .describe('How it is sent. A value that is none of that kind is left out and counted.'),
  unit: unitsOf({ ...speedUnits, ...angleUnits })
    .optional()
    .describe('With `type: number`: what the message has it in; sent as km/h or degrees.'),
  ...scaling,
  absent: absent(),
  decimal_comma: decimalComma(),
})

export const mapSchema = z
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
      .describe(
        'Odometer, engine hours and other values, sent as decimal texts without rounding error. Of several with the ' +
          'same type and part the first that has a value is sent.',
      ),
    fields: z
      .record(
        z
          .string()
          .max(200)
          .regex(
            /^[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*)*$/,
            'must be names of letters, digits, _ and - joined by dots',
          ),
        field,
      )
      .refine((fields) => Object.keys(fields).length <= 64, 'must have at most 64 fields')
      .default({})
      .describe(
        'Further fields of the payload, by their name: `gps.altitude` stands in `gps` (only where there is a position), ' +
          'others at the top of the payload; dots nest. Two messages that differ in one of them only are two payloads.',
      ),
  })
  .describe('Which value of a message becomes which field. A field that a message does not have is left out.')

export type MapConfig = z.output<typeof mapSchema>
export type FieldConfig = NonNullable<MapConfig['latitude']>
export type SignalConfig = MapConfig['signals'][number]
export type ExtraFieldConfig = MapConfig['fields'][string]
