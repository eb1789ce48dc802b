// time-config.ts: the schema of times in the configuration: the option `map.time`, and what `fix.time` and
// `coalesce.time` have in common with it.

import { z } from 'zod'
import { timeFormats } from '../times/times.ts'
import { fieldWhen } from './field-config.ts'
import { absent, path } from './path-options.ts'

/** One format, or several of which the first that can read the time counts. */
export const timeFormatOption = () =>
  z.union([z.enum(timeFormats), z.array(z.enum(timeFormats)).min(1).max(8)])

export const mapTime = z
  .strictObject({
    path: path(),
    format: timeFormatOption().describe(
      'Format of the time. `s` (also with fractions, `s-float`), `ms`, `us` since 1970; `iso` ' +
        '2024-05-13T05:46:12.280Z, also 20240513T054612Z; `datetime` 2024-05-13 05:46:12 in UTC; `compact` 20240513054612 in ' +
        'UTC; `auto` seconds or milliseconds by their size; `words` "Fri Feb 18 17:07:53 EST 2022" or ' +
        '"18-Feb-2022 17:07:52.743": English month, with an offset or a known zone abbreviation (EST to ' +
        'PDT are those of North America; IST, AST and others with several meanings are refused); ' +
        '`arrival` for messages without a time. In a list the first format that can read the time is ' +
        'used.',
    ),
    zone: z
      .enum(['utc'])
      .optional()
      .describe(
        'Zone of `iso` and `words` times that have none. Without this option such a time is refused.',
      ),
    absent: absent(),
    when: fieldWhen(),
    missing: z
      .enum(['refuse', 'arrival'])
      .default('refuse')
      .describe(
        'What to do with a message that has no time: `refuse` makes it a dead letter (NO_TIME), `arrival` ' +
          'sends it with its arrival time. A time that cannot be read is always refused.',
      ),
  })
  .optional()
  .describe(
    'When the values were measured; becomes `signalTimestamp`. Without it every message gets its ' +
      'arrival time, and only a message that the device sends again with DUP is recognized as a ' +
      'duplicate.',
  )
