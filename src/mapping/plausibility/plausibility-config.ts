// plausibility-config.ts: the schema of `plausibility`, at the top of the config and of a source.

import { z } from 'zod'
import { quantities, quantityNames, type Quantity } from './quantities.ts'

export const plausibilityActions = ['drop', 'flag', 'off'] as const

/** Of counters of the vehicle (memory/counter-memory.ts). */
const jumps = {
  jumps: z
    .enum(plausibilityActions)
    .optional()
    .describe(
      'What to do with a reading that is larger than the last one by more than the time allows, or smaller: ' +
        '`drop` omits it until three readings over ten minutes agree with each other, or 20 were omitted, ' +
        'or for a day; `flag` sends and counts it; `off` does not compare readings. Default: drop.',
    ),
}

function ruleOf(quantity: Quantity) {
  return z.strictObject(boundsOf(quantity)).optional().describe(`${quantities[quantity].what}.`)
}

function counterRuleOf(quantity: Quantity) {
  return z
    .strictObject({ ...boundsOf(quantity), ...jumps })
    .optional()
    .describe(`${quantities[quantity].what}.`)
}

function boundsOf(quantity: Quantity) {
  const { min, max } = quantities[quantity]
  return {
    min: z.number().optional().describe(`Smallest plausible value. Default: ${min}.`),
    max: z.number().optional().describe(`Largest plausible value. Default: ${max}.`),
    action: z
      .enum(plausibilityActions)
      .optional()
      .describe(
        'What to do with a value outside: `drop` omits the field and counts it, `flag` sends and counts it, ' +
          '`off` does not check it. Default: drop.',
      ),
  }
}

/** Each quantity keeps its own schema, so that rules of one quantity can have options of their own. */
export const plausibilityShape = {
  speed: ruleOf('speed'),
  heading: ruleOf('heading'),
  odometer: counterRuleOf('odometer'),
  distance: ruleOf('distance'),
  engine_hours: counterRuleOf('engine_hours'),
  duration: ruleOf('duration'),
  fuel_used: counterRuleOf('fuel_used'),
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
