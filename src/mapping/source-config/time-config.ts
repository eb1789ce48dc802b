// time-config.ts: the schema of times in the configuration: the option `map.time`, and what `fix.time` and
// `coalesce.time` have in common with it.

import { z } from 'zod'
import { timeFormats } from '../times/times.ts'
import { isZoneName, zoneProblem } from '../times/zones.ts'
import { fieldWhen, absent, expr, path, paths, text } from './path-options.ts'

/** One format, or several of which the first that can read the time counts. */
const timeFormatOption = () => z.union([z.enum(timeFormats), z.array(z.enum(timeFormats)).min(1).max(8)])

const zoneName = (words: readonly string[]) =>
  text(64)
    .refine((name) => words.includes(name) || isZoneName(name), {
      error: ({ input }) => zoneProblem(String(input)),
    })
    .meta({ examples: [...words, 'Europe/Berlin', 'America/New_York'] })

/** Of times without a zone of their own. */
const timeZone = () => zoneName(['utc', 'device']).optional()

/** Of a device. */
export const deviceZone = () => zoneName(['utc']).optional()

/** A date beside the time of day. */
export const dateOption = () =>
  z
    .strictObject({ path: paths().describe('Path to the date.') })
    .optional()
    .describe(
      'Where the date is a value of its own: `path` is the time of day then, and `format` that of the date: ' +
        '`dmy` for 130524 and 054612.28, `datetime` for 2024-05-13 and 05:46:12 or for 20240513 and 054612. ' +
        'A JSON number may lack the zeros at its start.',
    )

/** Of a time beside `map.time`: where it is, and how it is written. */
export const timeShape = () => ({
  path: paths().describe('Path to the time.'),
  format: timeFormatOption().describe('As `format` of `map.time`.'),
  zone: timeZone().describe('As `zone` of `map.time`.'),
})

export const mapTime = z
  .strictObject({
    path: path(),
    expr: expr(),
    format: timeFormatOption().describe(
      'Format of the time. `s` (also with fractions, `s-float`), `ms`, `us`, `ns` since 1970; `iso` ' +
        '2024-05-13T05:46:12.280Z, also 20240513T054612Z; `datetime` 2024-05-13 05:46:12, `compact` 20240513054612, both in UTC without ' +
        '`zone`; `dmy` 13.05.2024 05:46:12, 13/05/24 05:46 or 130524 054612, `mdy` 5/13/2024, 5:46:12 AM, `ymd` ' +
        '24/05/13 05:46:12: day, month and year in this order, a year of two digits from 2000 to 2099, AM, PM and a ' +
        'zone where they are there; `auto` seconds, ms, us or ns by their size; `words` "Fri Feb 18 17:07:53 EST 2022", ' +
        '"18-Feb-2022 17:07:52.743" or "nov/28/2026 5:07 PM": English month, with an offset or a known zone abbreviation (EST to ' +
        'PDT are those of North America; IST, AST and others with several meanings are refused); ' +
        '`arrival` for messages without a time. In a list the first format that can read the time is ' +
        'used.',
    ),
    zone: timeZone().describe(
      'Zone of times that have none: `utc`, a zone of the IANA database, or `device`: the column `zone` of the ' +
        'device table, else `zone` of `defaults`; a message of a device without either is a dead letter (NO_ZONE), or gets its arrival time with `missing: arrival`. ' +
        'Without this option such a time is refused, or in UTC with `datetime` and `compact`; `dmy`, `mdy` and ' +
        '`ymd` need it. When clocks go back, a repeated time is the first of the two; when they go ' +
        'forward, a skipped time is moved by what is skipped: 02:30 counts as 03:30.',
    ),
    date: dateOption(),
    shift: z
      .string()
      .regex(/^-?\d+(\.\d+)?(ms|s|m|h|d)$/, 'must be a duration such as 7168d, 978307200s or -2h')
      .optional()
      .describe(
        'Added to each time, for devices whose clock is off by a fixed time: `7168d` for 1024 weeks of GPS, ' +
          '`978307200s` for seconds since 2001, `-2h` for a local time that says it is UTC.',
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
