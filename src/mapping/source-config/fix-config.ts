// fix-config.ts: the schema of the option `fix` of a source: whether a message has a valid position, and when
// it was taken.

import { z } from 'zod'
import { duration } from '../../std/schema.ts'
import { ageUnitNames } from '../times/fix-time.ts'
import { absent, paths, text } from './path-options.ts'
import { dateOption, timeShape } from './time-config.ts'

const fixTime = z.union([
  z.strictObject({
    ...timeShape(),
    date: dateOption(),
    absent: absent(),
  }),
  z.strictObject({
    age: paths().describe(
      'Path to the age of the position. It was taken this long before the time of its message.',
    ),
    unit: z.enum(ageUnitNames).default('s').describe('Unit of the age.'),
    absent: absent(),
  }),
])

export const fixSchema = z
  .strictObject({
    valid: text(2048)
      .optional()
      .describe('Condition as in `when`. Where it is false, the message has no valid position.'),
    time: z
      .union([fixTime, z.array(fixTime).min(1).max(16)])
      .optional()
      .describe(
        'When the position was taken, if that is not the time of the message: a time, or an age. Of a list ' +
          'the earliest counts. An age is counted from the arrival where the message has no time.',
      ),
    max_age: duration({ minMs: 0, maxMs: 365 * 86_400_000 })
      .prefault('60s')
      .describe(
        'Largest age of a position, compared with its message. An older one is a last known position ' +
          'and not valid.',
      ),
    old: z
      .enum(['drop', 'keep'])
      .optional()
      .describe(
        'What to do with a position that is older than `max_age`: `drop` omits it, `keep` sends it, with all ' +
          'of its record, with its own time, for devices that measure at one time and transmit later. Default: ' +
          'as `no_fix`.',
      ),
    old_time: z
      .enum(['fix', 'message'])
      .default('fix')
      .describe(
        'The time that an old position is kept with: `fix` is its own, and records that repeat it are one ' +
          'reading; `message` is that of its record, for devices that report a last position again and again.',
      ),
  })
  .describe(
    'How to tell whether a message has a valid position. Where it has none, `no_fix` applies. A position ' +
      'near 0, 0 (in the sea), of -1, -1, of a pole, and of one largest number for both (65.535, 65.535) is never valid.',
  )

export const rememberSchema = z
  .strictObject({
    names: z
      .array(text(512))
      .min(1)
      .max(16)
      .describe('Keys of the message, or names of collected values, with a text, a number, true or false.'),
    for: duration({ minMs: 1000, maxMs: 365 * 86_400_000 })
      .prefault('1d')
      .describe('How long a value counts, by the times of the messages.'),
  })
  .describe(
    'Values that a device sends only when they change, such as the lock of its receiver or the ignition. ' +
      '`fix.valid` and `in_motion` read a message without them as if it had the last ones of the device. ' +
      'They are kept on disk. A message never uses what a later one said. The payloadId does not depend on them.',
  )

export const previousSchema = z
  .strictObject({
    for: duration({ minMs: 1000, maxMs: 365 * 86_400_000 })
      .prefault('30d')
      .describe(
        'How long a value counts, by the times of the messages. After it there is no previous value.',
      ),
  })
  .describe(
    'What expressions with `previous` read. `previous.odo` is the value of `odo` in the newest earlier record of ' +
      'the device that had one, by device time, and `previous.time` the time of the newest earlier record with any ' +
      'of these values, in milliseconds. Only signals and fields outside of `gps` can read them; these have no part in ' +
      'the payloadId. They are kept on disk, at most 16 of a device.',
  )
