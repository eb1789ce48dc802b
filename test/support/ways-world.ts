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
export async function severityOf(pipeline: Pipeline, seen: Seen): Promise<string | undefined> {
  const { code, cure } = seen
  const found = () => pipeline.status().conditions.find((one) => one.code === code)
  // Another condition may begin or end between the answers, and the verdict with it: then both are asked again.
  for (;;) {
    await pipeline.until(() => found() !== undefined && isSeen(pipeline.status(), seen))
    const condition = found()
    const { answer, metrics } = await answersOf(pipeline)
    if (!isSeen(JSON.parse(answer.text) as { verdict: string; sentence: string }, seen)) continue
    if (!metrics.includes(`gateway_verdict{verdict="${seen.verdict}"} 1`) || found() === undefined) continue
    expect(condition?.what).toMatch(/.\.( .*)?$/)
    expect(condition?.why).toMatch(/\S/)
    expect(condition?.act).toMatch(cure)
    expect(answer.status).toBe(seen.verdict === 'degraded' ? 200 : 503)
    expect(metrics).toMatch(new RegExp(`^gateway_condition\\{code="${code}",severity="\\w+"\\} [1-9]`, 'm'))
    return condition?.severity
  }
}

function isSeen(what: { verdict: string; sentence: string }, { verdict, sentence }: Seen): boolean {
  return what.verdict === verdict && sentence.test(what.sentence)
}

async function answersOf({ gateway }: Pipeline) {
  const { ops } = gateway.addresses
  return { answer: await get(ops, '/verdict'), metrics: (await get(ops, '/metrics')).text }
}

export async function publish(pipeline: Pipeline, count = 1): Promise<void> {
  const device = await pipeline.device('truck-1')
  for (let n = 1; n <= count; n += 1)
    device.publish({ topic: topicOf('truck-1'), payload: messageOf(n), messageId: n })
  await pipeline.until(() => device.acks.length === count)
}
