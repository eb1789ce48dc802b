// map-config.ts: the schema of the option `map`, which assigns values of a message to payload fields.

import { z } from 'zod'
import { angleUnits, signalUnits, speedUnits } from '../fields/units.ts'
import { constant, foundShape, scaling, unitsOf, paths, text } from './path-options.ts'
import { mapTime } from './time-config.ts'
import { quantityOption } from '../plausibility/plausibility-config.ts'

/** A number with a unit. */
const numberShape = <Unit extends z.ZodType>(unit: Unit) => ({
  ...foundShape(z.number(), constant),
  unit,
  ...scaling,
})

function numberField<Unit extends z.ZodType>(units: Unit, description: string) {
  return z.strictObject(numberShape(units)).optional().describe(description)
}

const coordinateUnit = () =>
  unitsOf({ ...angleUnits, ddmm: null, dms: null })
    .default('deg')
    .describe(
      'Unit in the message: deg, 1e-7deg, 0.01deg, rad; ddmm for degrees and minutes as NMEA writes them: 4851.396, also 4851.396N, is ' +
        '48 degrees and 51.396 minutes; dms for degrees, minutes and seconds in a text, with the hemisphere: ' +
        '"N 52 31.0", "52°31\'0.5"N".',
    )

function coordinateField(description: string) {
  return z
    .strictObject({
      ...numberShape(coordinateUnit()),
      hemisphere: z
        .strictObject({ path: paths().describe('Path to N, S, E or W.') })
        .optional()
        .describe(
          'Where the direction is a value of its own: S and W make the value negative. A position whose text or ' +
            'minus says another hemisphere is omitted like one that is not a number.',
        ),
    })
    .optional()
    .describe(description)
}

const angle = () =>
  unitsOf(angleUnits).default('deg').describe('Unit in the message: deg, 1e-7deg, 0.01deg or rad.')

const inMotion = z
  .strictObject({
    ...foundShape(z.boolean()),
    from: z
      .enum(['speed'])
      .optional()
      .describe(
        'Derives the motion from the speed of the message, when there is no path or the path has no value.',
      ),
    above: z
      .number()
      .min(0)
      .max(1000)
      .optional()
      .describe('With `from: speed`: the asset moves above this speed, in the unit that is sent (km/h).'),
    below: z
      .number()
      .min(0)
      .max(1000)
      .optional()
      .describe(
        'With `from: speed`: the asset does not move at or below this speed. Between `below` and ' +
          '`above` the state does not change. Default: the value of `above`.',
      ),
  })
  .optional()
  .describe(
    'Whether the asset moves: read from the message (true, 1, "yes", "on" and their opposites) or derived ' +
      'from the speed. Without this option it is not sent.',
  )

/** The name of a signal, or of a part: the same for each message. */
const fixedName = () =>
  text(100).refine((name) => !/[{}]/.test(name), {
    error:
      'is sent as it is written, so it cannot have a placeholder in braces; write one signal for each name, with `when`',
  })

const signal = z.strictObject({
  type: fixedName()
    .meta({ examples: ['OBD_LIFETIME_ODOMETER', 'OBD_TOTAL_ENGINE_TIME'] })
    .describe(
      'Type of the signal. Use OBD_LIFETIME_ODOMETER only for the total distance that the vehicle ' +
        'itself counts.',
    ),
  ...foundShape(z.union([z.number(), text(40)]), constant),
  unit: unitsOf(
    signalUnits,
    (unit) => `A value in ${unit} is sent as it is: write \`value_unit: ${unit}\` in place of \`unit\``,
  )
    .optional()
    .describe(
      'Unit in the message: km, m, mi and steps of 5m, 10m, 125m become KILOMETERS; h, min, s, ms, steps ' +
        'of 0.05h and `duration` ("182d2h0m0s") become HOURS, rounded to six places where necessary. ' +
        'Without it the value is sent as it is.',
    ),
  ...scaling,
  value_unit: text(100)
    .optional()
    .describe(
      'The unit in the payload. By default KILOMETERS or HOURS, from `unit` or the type; any text for ' +
        'values without `unit`.',
    ),
  quantity: quantityOption(),
  part: fixedName()
    .meta({ examples: ['ENGINE'] })
    .optional()
    .describe('The part of the asset (`assetPart`).'),
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
      'Origin of a number that the vehicle itself does not count (gnss, trip, server, ignition). Such a ' +
        'signal is sent only when `origins` of the source has this word: a distance computed from ' +
        'positions is not an odometer.',
    ),
})

/** Extra fields have no unit in the payload. */
function sentAsItIs(unit: string): string {
  const toCelsius = { FAHRENHEIT: '(t - 32) / 1.8', KELVIN: 't - 273.15' }[unit]
  return toCelsius === undefined
    ? `A value in ${unit} is sent as it is: write no \`unit\``
    : `Write \`expr: ${toCelsius}\` for degrees Celsius, by which bounds are meant, or no \`unit\` and \`quantity: none\``
}

const field = z
  .strictObject({
    ...foundShape(z.union([z.number(), z.boolean(), text(1000)])),
    type: z
      .enum(['number', 'text', 'boolean'])
      .describe('Type of the value in the payload. A value of another type is omitted and counted.'),
    unit: unitsOf({ ...speedUnits, ...angleUnits }, sentAsItIs)
      .optional()
      .describe('Unit of a speed or an angle in the message, for a number. It is sent as km/h or degrees.'),
    ...scaling,
    quantity: quantityOption(),
  })
  .describe('An extra field of the payload.')

export const mapSchema = z
  .strictObject({
    time: mapTime,
    latitude: coordinateField(
      'Latitude in degrees north. A position with a value beyond 90, or one that is not a number, is omitted ' +
        'and counted; a record without signals is a dead letter then.',
    ),
    longitude: coordinateField(
      'Longitude in degrees east. A value beyond 180, or one that is not a number, is treated like that of ' +
        'the latitude.',
    ),
    speed: numberField(
      unitsOf(speedUnits).optional().describe('Unit in the message. Default: km/h.'),
      'Speed. A value below zero, one that is not a number, or one above the bound of `plausibility` is ' +
        'omitted and counted.',
    ),
    heading: numberField(
      angle(),
      'Heading in degrees. 360 is sent as 0. A value outside of 0 to 360 (`plausibility`) is omitted and ' +
        'counted.',
    ),
    in_motion: inMotion,
    signals: z
      .array(signal)
      .max(256)
      .default([])
      .describe(
        'Odometer, engine hours and other values, sent as decimal texts without rounding error. Of ' +
          'several signals with the same type and part, the first one that has a value is sent.',
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
        'Extra fields of the payload by name. `gps.altitude` goes into `gps`, when there is a position; ' +
          'other fields go to the top level of the payload. A dot in a name makes a nested object. Two ' +
          'messages that differ only in an extra field are two payloads.',
      ),
  })
  .describe('Which value of a message becomes which field. A field without a value is omitted.')

export type MapConfig = z.output<typeof mapSchema>
export type FieldConfig = NonNullable<MapConfig['speed']>
/** A number field, whatever units it has. */
export type NumberField = Omit<FieldConfig, 'unit'> & { unit?: string | undefined }
export type CoordinateConfig = NonNullable<MapConfig['latitude']>
export type SignalConfig = MapConfig['signals'][number]
export type ExtraFieldConfig = MapConfig['fields'][string]
