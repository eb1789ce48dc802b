// value-types.ts: the values that /status is made of. Every field of the schema has a description: it becomes
// the reference and the OpenAPI document.

import { z } from 'zod'

/** `2026-01-02T03:04:05.678Z`. */
export const time = () => z.iso.datetime()

/** Null: never, or not known. */
export const timeOrNull = () => time().nullable()

export const count = () => z.int().min(0)

/** A size. */
export const bytes = () => count()

export const seconds = () => z.number().min(0)

/** Nothing else is in it, so that a field without a description cannot slip in. */
export const record = z.strictObject

/** The JSON Schema of an answer, for those who read it. They must accept fields that a later version adds. */
export function answerShape(schema: z.ZodType, target: 'draft-7' | 'draft-2020-12' = 'draft-2020-12') {
  return z.toJSONSchema(schema, {
    target,
    override({ jsonSchema }) {
      if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties
    },
  })
}
