import { describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { statusSchema } from '../../src/ops/status-schema/status-schema.ts'
import { startedOps } from '../support/ops-world.ts'

type Shape = { format?: string; anyOf?: readonly { format?: string }[] }

/** Every object, list entry and field of the schema with its path. */
function* fieldsOf(schema: z.ZodType, path = ''): Generator<{ path: string; schema: z.ZodType }> {
  const { def } = schema as unknown as {
    def: { type: string; shape?: Record<string, z.ZodType>; element?: z.ZodType; innerType?: z.ZodType }
  }
  if (def.innerType) yield* fieldsOf(def.innerType, path)
  if (def.element) yield* fieldsOf(def.element, `${path}[]`)
  for (const [name, field] of Object.entries(def.shape ?? {})) {
    const below = path === '' ? name : `${path}.${name}`
    yield { path: below, schema: field }
    yield* fieldsOf(field, below)
  }
}

describe('the schema of the status', () => {
  const fields = [...fieldsOf(statusSchema)]

  test('describes every field', () => {
    expect(fields.length).toBeGreaterThan(150)
    expect(fields.filter(({ schema }) => !schema.description?.endsWith('.')).map(({ path }) => path)).toEqual(
      [],
    )
  })

  test('names times and durations so that their unit is known', () => {
    const isTime = ({ schema }: { schema: z.ZodType }) => {
      const { format, anyOf = [] } = schema.toJSONSchema() as Shape
      return [format, ...anyOf.map((one) => one.format)].includes('date-time')
    }
    const [times, others] = [fields.filter(isTime), fields.filter((field) => !isTime(field))]
    const named = /(At|since|now|lastSeen)$/
    expect(times.length).toBeGreaterThan(10)
    expect(times.filter(({ path }) => !named.test(path))).toEqual([])
    expect(others.filter(({ path }) => named.test(path)).map(({ path }) => path)).toEqual(['totals.since'])
    expect(others.filter(({ path }) => /(Duration|Age|Delay|Timeout|PerS|Secs)$/.test(path))).toEqual([])
  })

  // With something in every list: http-routing/openapi.test.ts.
  test('is what a daemon without stages answers', async () => {
    await using ops = await startedOps()
    const answer = await ops.json('/status')
    expect(statusSchema.parse(answer)).toEqual(answer)
  })
})
