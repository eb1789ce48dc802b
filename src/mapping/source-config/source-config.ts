// source-config.ts: one source of the section `sources`: where messages come from and how they are read. A preset is
// the same without a name (preset-merge.ts).

import { z } from 'zod'
import { duration } from '../../std/schema.ts'
import { mapSchema, paths, text, timeFormatOption } from './map-config.ts'
import { extractSchema } from '../extract/extract-config.ts'

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

const windowOf = () => duration({ minMs: 1, maxMs: 3_600_000 })

const names = (about: string) => z.array(text(512)).max(256).optional().describe(about)

const coalesce = z
  .strictObject({
    name: z
      .union([text(512), z.strictObject({ path: paths() })])
      .describe(
        'The name of a value: a template over the captures of the topic such as "{metric}", or where it stands in the ' +
          'message. All other paths of the source then read the collected values by these names.',
      ),
    value: paths().default('value').describe('Where the value stands. A scalar message has it in `value`.'),
    names: names(
      'Only these are collected, others are ignored and counted. Default: those that the paths of the source name.',
    ),
    time: z
      .strictObject({
        path: paths(),
        format: timeFormatOption().describe('As `format` of `map.time`.'),
        zone: z.enum(['utc']).optional().describe('As `zone` of `map.time`.'),
      })
      .optional()
      .describe(
        'When a single value was measured, if it says so. The newest of them is the time of the payload where `map` has ' +
          'no `time`.',
      ),
    require: names('Without all of these the collected values are not sent, but counted as incomplete.'),
    complete: names('As soon as all of these are there, the payload is made. Default: when the window ends.'),
    latest: names(
      'Of these a further value takes the place of the one before. A second value of any other name ends what was ' +
        'collected and begins anew.',
    ),
    window: windowOf()
      .prefault('500ms')
      .describe('How long after the first value further ones still belong to it.'),
    pair_within: windowOf()
      .optional()
      .describe('Values whose times lie further apart do not go together: the earlier ones are sent first.'),
  })
  .describe(
    'For devices that publish each value by itself: values of one device are collected and become one payload. They are ' +
      'acknowledged when they are on the disk, and a crash loses none.',
  )

const fix = z
  .strictObject({
    valid: text(2048)
      .optional()
      .describe('Condition as in `when`. Where it does not hold the position is none.'),
    time: z
      .strictObject({
        path: paths(),
        format: timeFormatOption().describe('As `format` of `map.time`.'),
        zone: z.enum(['utc']).optional().describe('As `zone` of `map.time`.'),
      })
      .optional()
      .describe('When the position was taken, where that is not the time of the message.'),
    max_age: duration({ minMs: 0, maxMs: 365 * 86_400_000 })
      .prefault('60s')
      .describe('A position older than the message by more is the last known one, not where the asset is.'),
  })
  .describe(
    'Whether the position of a message is one. What `no_fix` says is done where it is not; a position of 0, 0 is none ' +
      'in any case.',
  )

const thin = z
  .strictObject({
    every: windowOf().optional().describe('One payload passes in this time, by the times of the device.'),
    distance: z.number().positive().max(1e6).optional().describe('Passes when moved so far, in metres.'),
    heading: z.number().positive().max(180).optional().describe('Passes when turned so far, in degrees.'),
    signal: z
      .boolean()
      .default(false)
      .describe('Passes when a signal or further field has another value than before.'),
  })
  .describe(
    'Fewer payloads: what is no news by any of these is ignored and counted as `thinned`. What begins or ceases to move ' +
      'passes always, and so does what is older than the last one.',
  )

const merge = z
  .strictObject({
    group: text(64).describe('Sources with the same word here give one payload for an asset.'),
    window: windowOf()
      .prefault('10s')
      .describe('How long a position waits for signals, and signals for a position.'),
  })
  .describe(
    'Joins what several sources know of one asset: the position from one, the odometer from another. What is alone when ' +
      'the window ends is sent alone.',
  )

const each = z.union([
  text(1024),
  z.strictObject({ path: paths() }),
  z
    .array(z.union([text(1024), z.strictObject({ path: paths() })]))
    .min(1)
    .max(4),
])

const deviceRule = z.union([text(512), z.strictObject({ path: paths().describe('Where its name stands.') })])

/** Everything but the name: what a preset may say. */
export const presetShape = {
  description: text(2000).optional().describe('A note for people. The gateway does not use it.'),
  topic: z
    .union([z.string(), z.array(z.string()).min(1).max(64)])
    .meta({ examples: ['telemetry/v1/{device}', '/hfp/v2/journey/+/{event}/#'] })
    .describe(
      'MQTT topic filter, or a list of them. A level written {name} is captured: {device} names the device; {name#} at ' +
        'the end captures all further levels. Of several sources that match, the first takes the message; a message ' +
        'that no source takes becomes a dead letter (NO_SOURCE).',
    ),
  exclude: z
    .array(text(1024))
    .max(64)
    .default([])
    .describe('Topic filters whose messages are ignored and counted, although `topic` matches them.'),
  encoding: z
    .enum(['json', 'text', 'scalar', 'csv', 'teltonika', 'iotm', 'sparkplug'])
    .default('json')
    .describe(
      'How the message is written. `text`: the whole message is one text, found at the path `value`; `scalar`: the same ' +
        'without blanks around it, and an empty one is nothing; `csv`: each line makes a record with its `fields`; ' +
        '`teltonika`: a binary frame of Codec 8, 8 Extended or 16, with `records`; `iotm`: a binary message of an IOTM ' +
        'tracker, with `records`; `sparkplug`: Sparkplug B, with `records` of `metrics` by their names.',
    ),
  retained: z
    .enum(['take', 'ignore'])
    .default('take')
    .describe(
      'What to do with a message whose retain flag is set. A device that asks a broker to retain its message ' +
        'sends it as live data; a subscription to another broker replays old ones with it.',
    ),
  device: z
    .union([deviceRule, z.array(deviceRule).min(1).max(8)])
    .optional()
    .describe(
      'What names the device: a template over the captures of the topic and {clientid}, {username}, {certificate}, ' +
        'such as "{operator}/{vehicle}", or `{ path: imei }`; of a list the first that names one. Default: ' +
        '{device}. Without a name the message becomes a dead letter (NO_DEVICE).',
    ),
  provider: text(256)
    .optional()
    .describe(
      'Whose data it is, where the device table does not say: a name, or a template over the captures such as "{fleet}".',
    ),
  model: text(256)
    .optional()
    .describe('Model of the devices of this source, where the device table has none.'),
  families: z
    .record(text(64), z.array(text(256)).min(1).max(256))
    .default({})
    .describe(
      'Families of models for signals that mean something else on each: `truck: [FMB6*, FMC650]`, a * at the end for ' +
        "any ending. The first family that matches is the device's.",
    ),
  warn_without_model: text(256)
    .optional()
    .describe(
      'What is left out for devices whose model belongs to no family; the words of the warning that says so.',
    ),
  extract: extractSchema,
  each: each
    .optional()
    .describe(
      'A path to the part of the message that all other paths start from. Where it is a list, each element makes ' +
        'a payload (at most 1,000); if one of them cannot be mapped, the whole message becomes a dead letter. A list of ' +
        'paths: one inside the other, such as ["$entries()", "value"]; what stands around a record is found by `$up.`.',
    ),
  when: text(4096)
    .meta({ examples: ['lat != null and sat >= 3', '{event} == "vp"'] })
    .optional()
    .describe(
      'Condition. Where it does not hold, the message is ignored and counted. == != < <= > >=, in ("a", "b"), not in ' +
        '(...), and, or, not, brackets, exists(path), paths, {captures}, numbers, "texts", true, false, null (also for ' +
        'what is absent). A key that needs quotes stands in brackets where it comes first: ["69"] != 2.',
    ),
  refuse: z
    .array(
      z.strictObject({
        when: text(4096).describe('Condition as in `when`, judged before it.'),
        reason: z
          .string()
          .regex(
            /^[A-Z][A-Z0-9_]{2,39}$/,
            'must be a word of capital letters, digits and _, such as ENCRYPTED',
          )
          .describe('Reason of the dead letter.'),
        detail: text(500).describe('A sentence for whoever finds it: what it is, and what to do.'),
      }),
    )
    .max(16)
    .default([])
    .describe(
      'Messages that look like telemetry and must not become any: each becomes a dead letter with its reason, so that ' +
        'it is seen.',
    ),
  jsonata: text(10_000)
    .optional()
    .describe(
      'For what nothing else here can say: a JSONata expression over the message whose result, an object or a list of ' +
        'objects, takes the place of the message. Evaluated aside with limits of time and depth; such messages are kept ' +
        'on the disk meanwhile.',
    ),
  coalesce: coalesce.optional(),
  fix: fix.optional(),
  no_fix: z
    .enum(['drop-gps', 'keep'])
    .default('drop-gps')
    .describe(
      'What becomes of a position that is none by `fix`: left out (a message with nothing else is ignored as `no fix`), ' +
        'or sent all the same, under its own time where that is known.',
    ),
  origins: z
    .array(text(64))
    .max(32)
    .default([])
    .describe(
      'Signals with one of these as `origin` are sent too, such as [gnss] for distances that a tracker adds up itself.',
    ),
  thin: thin.optional(),
  merge: merge.optional(),
  defaults: defaultsSchema.describe('As `defaults`, for this source; goes before those.'),
  map: mapSchema,
}

export const sourceSchema = z.strictObject({
  name: text(64).describe('Name in counters, dead letters and messages to you; each source needs its own.'),
  preset: text(1024)
    .optional()
    .describe(
      'Takes what is not said here from a preset: a name such as teltonika-json (`config/presets` has them), or the path ' +
        'of a file like those, ending in .yaml. `map` is merged field by field.',
    ),
  ...presetShape,
})

export type SourceConfig = z.output<typeof sourceSchema>
