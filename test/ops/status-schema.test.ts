import { describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { statusSchema } from '../../src/ops/status-schema/status-schema.ts'
import { messageOf, startPipeline, topicOf } from '../support/pipeline-world.ts'
import { get, opsWorld } from '../support/ops-world.ts'

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

  test('is what a daemon without stages answers', async () => {
    await using world = opsWorld()
    await world.ops.start()
    const answer: unknown = JSON.parse((await get(world.ops.url(), '/status')).text)
    expect(statusSchema.parse(answer)).toEqual(answer)
  })

  test('is what a daemon at work answers, with something in every list', async () => {
    const pipeline = await startPipeline({})
    const device = await pipeline.device('truck-1')
    device.publish({ topic: topicOf('truck-1'), payload: messageOf(1), messageId: 1 })
    device.publish({ topic: topicOf('truck-1'), payload: 'no json', messageId: 2 })
    await device.acked(2)
    await pipeline.until(() => pipeline.status().lanes.length > 0)
    const answer = JSON.parse((await get(pipeline.gateway.addresses.ops, '/status')).text) as ReturnType<
      typeof pipeline.status
    >
    expect(statusSchema.parse(answer)).toEqual(answer)
    expect(answer.reasons.map(({ kind }) => kind).toSorted()).toEqual(['unmappable'])
    expect(answer.conditions.length).toBeGreaterThan(0)
    expect(answer.spool.stores.length).toBeGreaterThan(0)
    expect(answer.internals.conservation.lanes.length).toBeGreaterThan(0)
  })
})
