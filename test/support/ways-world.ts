// ways-world.ts: how a way of not working must be seen: the verdict with its sentence, a condition with what, why
// and what to do, and the metrics of both.

import { expect } from 'vitest'
import type { ConditionCode } from '../../src/ops/conditions/condition-catalogue.ts'
import type { Verdict } from '../../src/ops/gateway-verdict/gateway-verdict.ts'
import { get } from './ops-world.ts'
import { messageOf, topicOf, type Pipeline, type PipelineOptions } from './pipeline-world.ts'

export type Seen = {
  code: ConditionCode
  verdict: Verdict
  sentence: RegExp
  /** What a person is told to do. */
  cure: RegExp
}

export type Way = Seen & {
  name: string
  options?: PipelineOptions
  /** What happens; without it a device publishes one message. */
  act?: (pipeline: Pipeline) => Promise<void>
}

/** Of the condition, which is seen everywhere. */
export async function severityOf(
  pipeline: Pipeline,
  { code, verdict, sentence, cure }: Seen,
): Promise<string | undefined> {
  const found = () => pipeline.status().conditions.find((one) => one.code === code)
  await pipeline.until(
    () =>
      found() !== undefined &&
      pipeline.status().verdict === verdict &&
      sentence.test(pipeline.status().sentence),
  )
  const condition = found()
  expect(condition?.what).toMatch(/.\.( .*)?$/)
  expect(condition?.why).toMatch(/\S/)
  expect(condition?.act).toMatch(cure)
  const { ops } = pipeline.gateway.addresses
  const answer = await get(ops, '/verdict')
  expect(answer.status).toBe(verdict === 'degraded' ? 200 : 503)
  expect(JSON.parse(answer.text)).toMatchObject({ verdict, sentence: expect.stringMatching(sentence) })
  const metrics = (await get(ops, '/metrics')).text
  expect(metrics).toMatch(new RegExp(`^gateway_condition\\{code="${code}",severity="\\w+"\\} [1-9]`, 'm'))
  expect(metrics).toContain(`gateway_verdict{verdict="${verdict}"} 1`)
  return condition?.severity
}

export async function publish(pipeline: Pipeline, count = 1): Promise<void> {
  const device = await pipeline.device('truck-1')
  for (let n = 1; n <= count; n += 1)
    device.publish({ topic: topicOf('truck-1'), payload: messageOf(n), messageId: n })
  await pipeline.until(() => device.acks.length === count)
}
