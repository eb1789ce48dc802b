// source-config.ts: the schema of one source in the section `sources`: its topics and how its messages are
// read. A preset has the same options without a name (preset-merge.ts).

import { z } from 'zod'
import { recordsMost } from '../path/record-selection.ts'
import { fixSchema, previousSchema, rememberSchema } from './fix-config.ts'
import { mapSchema } from './map-config.ts'
import { foundBy, pathOption, paths, text } from './path-options.ts'
import { secret, size, duration } from '../../std/schema.ts'
import { keysMax } from '../extract/secretbox.ts'
import { deviceZone, timeShape } from './time-config.ts'
import { plausibilitySchema } from '../plausibility/plausibility-config.ts'
import { extractSchema } from '../extract/extract-config.ts'
import { compressions } from '../body/body.ts'
import { usualLimits } from '../body/body-limits.ts'
import { encodingNames, encodingsDescription } from '../encodings/encodings.ts'
import { charsets } from '../body/body-kinds.ts'

// The options of a source for the bytes of its messages.

const bodyFields = {
  encoding: z.enum(encodingNames).default('json').describe(`Format of the message. ${encodingsDescription}`),
  compression: z
    .enum(compressions)
    .optional()
    .describe(
      'How the message is compressed, whatever its encoding is: `deflate` is zlib without its header. With gzip ' +
        'and zlib a message that is not compressed is read too. Payloads of Sparkplug and Kura say it themselves.',
    ),
  charset: z
    .enum(charsets)
    .optional()
    .describe(
      'Charset of a text, such as JSON or CSV. Default: UTF-8, and UTF-16 where a byte order mark says so. `latin1` ' +
        'has the signs of windows-1252 too. Without it, a byte that is not UTF-8 makes the message a dead letter ' +
        '(NOT_UTF8) only where it is in a value that the source reads.',
    ),
  max_unpacked_bytes: size({ minBytes: 1024, maxBytes: 64 * 1024 ** 2 })
    .prefault(`${usualLimits.unpackedBytesMax / 1024}KiB`)
    .describe(
      'Size of a message after it was unpacked, also of one of Sparkplug or Kura. A larger one becomes a dead letter ' +
        '(TOO_LARGE). A few bytes can unpack to a thousand times as many, which hold up all other messages while ' +
        'they are read.',
    ),
}

// The schema of the options `thin` and `merge` of a source.

const windowOf = () => duration({ minMs: 1, maxMs: 3_600_000 })

const thin = z
  .strictObject({
    every: windowOf()
      .optional()
      .describe(
        'A payload passes when its device time is at least this much later than that of the last payload.',
      ),
    distance: z
      .number()
      .positive()
      .max(1e6)
      .optional()
      .describe(
        'A payload passes when the asset has moved at least this far since the last payload, in metres.',
      ),
    heading: z
      .number()
      .positive()
      .max(180)
      .optional()
      .describe(
        'A payload passes when the heading has changed by at least this since the last payload, in ' +
          'degrees.',
      ),
    signal: z
      .boolean()
      .default(false)
      .describe('A payload passes when a signal or extra field differs from the last payload.'),
  })
  .describe(
    'Fewer payloads: a payload that passes none of these rules is ignored and counted as `thinned`. A ' +
      'payload always passes when the asset starts or stops moving, and when it is older than the last one.',
  )

const merge = z
  .strictObject({
    group: text(64).describe('Name of the group. Sources with the same group make one payload per asset.'),
    window: windowOf()
      .prefault('10s')
      .describe('How long the data of one source waits for the data of the other sources.'),
  })
  .describe(
    'Joins the data of several sources about one asset: the position from one, the odometer from ' +
      'another. If the data of only one source has arrived when the window ends, it is sent alone.',
  )

/** A value for devices without it in the device table. */
const unlessListed = (what: string) =>
  text(256).optional().describe(`${what}, unless the device table has one.`)

export const defaultsSchema = z
  .strictObject({
    carrier: unlessListed('Carrier'),
    operator: unlessListed('Operator of the asset'),
    asset_type: unlessListed('Type of the asset').meta({ examples: ['TRACTOR'] }),
    manufacturer: unlessListed('Manufacturer of the device'),
    model: unlessListed('Model of the device'),
    zone: deviceZone().describe(
      'Time zone of the device, unless the device table has one; for sources with `zone: device`.',
    ),
  })
  .prefault({})
  .describe('Values for empty fields of the device table and for devices that are not in it.')

const names = (description: string) => z.array(text(512)).max(256).optional().describe(description)

const coalesce = z
  .strictObject({
    name: z
      .union([text(512), pathOption('Path to the name in the message.')])
      .describe(
        'The name of a value: a template of topic captures such as "{metric}", or a path in the message. ' +
          'All other paths of the source read the collected values by these names.',
      ),
    value: paths().default('value').describe('Path to the value. A scalar message has it in `value`.'),
    names: names(
      'Names to collect. Values of other names are ignored and counted. Default: the names that the paths ' +
        'of the source use.',
    ),
    time: z
      .strictObject(timeShape())
      .optional()
      .describe(
        'When a single value was measured. The newest of these times is the time of the payload when `map` ' +
          'has no `time`.',
      ),
    require: names(
      'Names that a payload needs. Without all of them the collected values are not sent, but counted as ' +
        'incomplete.',
    ),
    complete: names('When all of these have arrived, the payload is made. Default: when the window ends.'),
    latest: names(
      'Names of which a newer value replaces the previous one. A second value of any other name closes ' +
        'the record and opens a new one.',
    ),
    window: windowOf().prefault('500ms').describe('How long values are collected after the first one.'),
    pair_within: windowOf()
      .optional()
      .describe(
        'Largest difference between the times of values in one payload. With a larger one the earlier ' +
          'values are sent first. Default: 1m, or the window if that is longer; between latitude and ' +
          'longitude 1s, because another time is another place.',
      ),
  })
  .describe(
    'For devices that publish each value in a separate message: the values of one device are collected ' +
      'and become one payload. The messages are acknowledged when the values are on disk, so a crash ' +
      'loses none.',
  )

const recordPath = z.union([text(1024), ...foundBy('the record or the list of records')])

const each = z.union([recordPath, z.array(recordPath).min(1).max(4)])

const deviceRule = z.union([text(512), ...foundBy('the name of the device')])

/** All options but the name: those of a preset. */
export const presetShape = {
  description: text(2000).optional().describe('A note for people. The gateway does not use it.'),
  topic: z
    .union([z.string(), z.array(z.string()).min(1).max(64)])
    .meta({ examples: ['telemetry/v1/{device}', '/hfp/v2/journey/+/{event}/#'] })
    .describe(
      'MQTT topic filter, or a list of them. {name} captures a level: {device} names the device. {name#} ' +
        'at the end captures all further levels. When several sources match, the first one whose `when` ' +
        'holds takes the message. A message that no source takes becomes a dead letter (NO_SOURCE).',
    ),
  exclude: z
    .array(text(1024))
    .max(64)
    .default([])
    .describe('Topic filters of messages that are ignored and counted although `topic` matches.'),
  ...bodyFields,
  retained: z
    .enum(['take', 'ignore'])
    .default('take')
    .describe(
      'What to do with messages that another broker had stored (retained) and that may be old. A message that ' +
        'a device sends to the gateway with the retain flag is new and always taken.',
    ),
  wills: z
    .enum(['ignore', 'take'])
    .optional()
    .describe(
      'What to do with the will of a client, which is published when its connection ends without DISCONNECT. ' +
        'A client writes it when it connects, so it is neither new nor always about that client. `take` maps ' +
        'it like any message. In both cases the device list shows the connection as lost. Default: `take` ' +
        'with the encoding sparkplug, whose NDEATH is a will, else `ignore`.',
    ),
  device: z
    .union([deviceRule, z.array(deviceRule).min(1).max(8)])
    .optional()
    .describe(
      'The name of the device: a template of topic captures and {clientid}, {username}, {certificate}, ' +
        '{identity} (the name that the client proved by password, token or certificate), {user.NAME} (a user ' +
        'property of MQTT 5) and {content_type}, such as "{operator}/{vehicle}", or `{ path: imei }`. In a list the ' +
        'first entry that gives a name is used. Blanks and line breaks around it are no part of it. Default: ' +
        '{device}. Without a name the message becomes a dead letter (NO_DEVICE).',
    ),
  identity: text(64)
    .meta({ examples: ['device'] })
    .optional()
    .describe(
      'Name of the topic capture that must be the identity of the client, such as device: a client may publish ' +
        'under its own name only. The identity is the name that the client proved by password, token or ' +
        'certificate, so an anonymous client may not publish here. What happens to other messages: ' +
        '`ingest.broker.rules.on_violation`. Default: every client may publish to the topics of this source.',
    ),
  provider: text(256)
    .optional()
    .describe(
      'The provider, unless the device table names one: a name, or a template of topic captures such as ' +
        '"{fleet}".',
    ),
  model: unlessListed('Model of the devices of this source'),
  families: z
    .record(text(64), z.array(text(256)).min(1).max(256).describe('Models of the family.'))
    .default({})
    .describe(
      'Families of models, for signals that have another meaning on each: `truck: [FMB6*, FMC650]`. A * ' +
        'at the end matches any ending. A device belongs to the first family that matches.',
    ),
  models: z
    .array(text(64))
    .max(512)
    .default([])
    .describe('Known models, for `check`: it warns of a model that is not among them.'),
  warn_without_model: text(256)
    .optional()
    .describe(
      'Text for the warning about devices whose model belongs to no family: which values are omitted.',
    ),
  extract: extractSchema,
  each: each
    .optional()
    .describe(
      'Path to the part of the message at which all other paths start. Default: the message. When it is a list, each element ' +
        'makes a payload (at most `max_records`), and stands alone: one that cannot be mapped is kept, and the others are ' +
        'sent; one with nothing but a position out of range is left out and counted. In a list of paths, each path starts in the result of the previous one, such as ' +
        '["$entries()", "value"]. `$up.` reads from the object that contains the record.',
    ),
  max_records: z
    .int()
    .min(1)
    .max(recordsMost)
    .default(1000)
    .describe(
      'Number of elements that `each` may select in one message. A message with more becomes a dead letter ' +
        '(TOO_MANY), and so does one with more than 128 values, or 2 KiB (TOO_LARGE), for each of them. Raise this number and ' +
        'requeue it, or have the sender make smaller messages. All payloads of a message are written at once, so a ' +
        'larger number needs more memory; and while a message is read, all others wait.',
    ),
  when: text(4096)
    .meta({ examples: ['lat != null && sat >= 3', 'topic.event == "vp"'] })
    .optional()
    .describe(
      'Condition (CEL). Where it is false, the message goes to the next source that has its topic; without one ' +
        'it is ignored and counted. It may use == != < <= > >=, in ["a", "b"], &&, ||, !, parentheses, has(path), ' +
        'keys of the record, topic.NAME for a capture, numbers, "texts", true, false and null (also for an absent ' +
        'value), and the functions of expressions. A key that is no name is written record["69"] != 2.',
    ),
  refuse: z
    .array(
      z.strictObject({
        when: text(4096).describe('Condition as in `when`, checked before it.'),
        reason: z
          .string()
          .regex(/^[A-Z][A-Z0-9_]{2,39}$/, 'must be capital letters, digits and _, such as ENCRYPTED')
          .describe('Reason of the dead letter.'),
        detail: text(500).describe('A sentence for the operator: what the message is, and what to do.'),
      }),
    )
    .max(16)
    .default([])
    .describe(
      'Rules for messages that look like telemetry and must not be mapped. Each becomes a dead letter ' +
        'with its reason, so that an operator sees it.',
    ),
  coalesce: coalesce.optional(),
  fix: fixSchema.optional(),
  no_fix: z
    .enum(['drop-gps', 'keep'])
    .default('drop-gps')
    .describe(
      'What to do with a position that is not valid by `fix`: `drop-gps` omits it (a message with nothing ' +
        'else is ignored as `no fix`), `keep` sends it. An old one has its own time then, or that of its ' +
        'message where the record has signals or extra fields too.',
    ),
  remember: rememberSchema.optional(),
  previous: previousSchema.optional(),
  origins: z
    .array(text(64))
    .max(32)
    .default([])
    .describe(
      'Signals with one of these words as `origin` are sent too, such as [gnss] for distances that a ' +
        'tracker computes from positions.',
    ),
  plausibility: plausibilitySchema.describe(
    'Like the section `plausibility`, for this source only. What is set here overrides it, option by option.',
  ),
  unused: z
    .array(text(1024))
    .max(256)
    .default([])
    .describe(
      'Paths of values that are left out on purpose, such as rxInfo: `map --explain` and dead letters do not ' +
        'name them as unread.',
    ),
  thin: thin.optional(),
  merge: merge.optional(),
  defaults: defaultsSchema.describe(
    'Like the section `defaults`, for this source only. These values override `defaults`.',
  ),
  map: mapSchema,
}

const keysSchema = z
  .strictObject({
    shared: z
      .array(secret())
      .max(keysMax)
      .default([])
      .describe('Keys for every device that has none of its own. They are tried in order.'),
    devices: secret()
      .optional()
      .describe(
        'Keys of devices, as CSV: the first line is `device,key`, then follows a line for each key. A device may ' +
          'have up to 8, which are tried in order; with keys of its own it is not opened with shared ones. The ' +
          'topic must name the device.',
      ),
  })
  .describe(
    'Keys for `extract` with `as: secretbox`: each is a secret of 1 to 32 bytes, padded with zeros to 32. ' +
      'Several keys let a device change its key.',
  )

export const presetOption = text(1024)
  .optional()
  .describe(
    'The preset that gives all options that are missing here: a name such as teltonika-json (see ' +
      '`config/presets`), or the path of a file of the same form that ends in .yaml. `map` is merged field by ' +
      'field. A preset may name another one.',
  )

export const sourceSchema = z.strictObject({
  name: text(64).describe('Unique name of the source, for counters, dead letters and logs.'),
  preset: presetOption,
  from: z
    .array(text(64))
    .min(1)
    .max(65)
    .meta({ examples: [['depot']] })
    .optional()
    .describe(
      'Where the messages come from: names of `ingest.bridges`, and `broker` for devices that connect to the ' +
        'gateway. Messages from elsewhere go to the next source that matches. Default: from everywhere.',
    ),
  keys: keysSchema.optional(),
  ...presetShape,
})

export type SourceConfig = z.output<typeof sourceSchema>
