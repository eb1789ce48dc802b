// plausibility-config.ts: the schema of `plausibility`, at the top of the config and of a source.

import { z } from 'zod'
import { quantities, quantityNames, type Quantity } from './quantities.ts'

export const plausibilityActions = ['drop', 'flag', 'off'] as const

function ruleOf(quantity: Quantity) {
  const { min, max, what } = quantities[quantity]
  return z
    .strictObject({
      min: z.number().optional().describe(`Smallest plausible value. Default: ${min}.`),
      max: z.number().optional().describe(`Largest plausible value. Default: ${max}.`),
      action: z
        .enum(plausibilityActions)
        .optional()
        .describe(
          'What to do with a value outside: `drop` omits the field and counts it, `flag` sends and counts it, ' +
            '`off` does not check it. Default: drop.',
        ),
    })
    .optional()
    .describe(`${what}.`)
}

/** Each quantity keeps its own schema, so that rules of one quantity can have options of their own. */
export const plausibilityShape = {
  speed: ruleOf('speed'),
  heading: ruleOf('heading'),
  odometer: ruleOf('odometer'),
  distance: ruleOf('distance'),
  engine_hours: ruleOf('engine_hours'),
  duration: ruleOf('duration'),
  battery: ruleOf('battery'),
  fuel: ruleOf('fuel'),
  temperature: ruleOf('temperature'),
  voltage: ruleOf('voltage'),
  altitude: ruleOf('altitude'),
} satisfies Record<Quantity, unknown>

export const plausibilitySchema = z
  .strictObject(plausibilityShape)
  .prefault({})
  .describe(
    'Bounds of plausible values, judged after conversion to the unit that is sent. A value outside is ' +
      'omitted and counted by device, field and reason; the rest of the payload is sent.',
  )

export const quantityOption = () =>
  z
    .enum([...quantityNames, 'none'])
    .optional()
    .describe(
      'The quantity of `plausibility` whose bounds apply. Default: by the name and unit of the field; `none` ' +
        'for no bounds.',
    )

export type PlausibilityConfig = z.output<typeof plausibilitySchema>
