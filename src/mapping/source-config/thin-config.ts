// thin-config.ts: the schema of the options `thin` and `merge` of a source.

import { z } from 'zod'
import { duration } from '../../std/schema.ts'
import { text } from './path-options.ts'

export const windowOf = () => duration({ minMs: 1, maxMs: 3_600_000 })

export const thin = z
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

export const merge = z
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
