// alert-test.ts: sends a test through each receiver, for `alerts test`; and looks whether each can be
// reached, for `check --connect` and `doctor`. Without a daemon too.

import type { Clock } from '../std/clock.ts'
import type { AlertsConfig } from './config.ts'
import { tryOnce } from './receiver-try.ts'
import { healthyVerdictsOf, type HeartbeatRequest } from './heartbeat.ts'
import { createHeartbeatRequest, createReceiver, type ReceiverDeps } from './receivers/receivers.ts'
import type { Alert, AlertTest, Sent, Situation } from './types.ts'

export type TestDeps = ReceiverDeps & {
  clock: Clock
  newId: () => string
  version: string
  page: () => string | null
  situation: () => Situation
}

type Options = { alerts: AlertsConfig }

/** Either a receiver or a heartbeat. */
type Tested = Pick<AlertTest, 'name' | 'type' | 'target'> & {
  timeoutMs: number
  test(ends: AbortSignal): Promise<Sent>
  check(ends: AbortSignal): Promise<Sent>
}

/** All at once. Null: there is no receiver of this name. */
export async function testReceivers(
  deps: TestDeps,
  options: Options,
  { name, signal }: { name: string | null; signal: AbortSignal },
): Promise<readonly AlertTest[] | null> {
  const all = testedOf(deps, options, deps)
  const chosen = all.filter((one) => name === null || one.name === name)
  if (name !== null && chosen.length === 0) return null
  return Promise.all(
    chosen.map((one) => run(deps.clock, one, { step: (ends) => one.test(ends), stop: signal })),
  )
}

/** Sends nothing. */
export function checkReceivers(
  deps: ReceiverDeps & { clock: Clock },
  options: Options,
  stop: AbortSignal,
): Promise<readonly AlertTest[]> {
  const all = testedOf(deps, options, null)
  return Promise.all(all.map((one) => run(deps.clock, one, { step: (ends) => one.check(ends), stop })))
}

/** For `check`. `from`: null of a heartbeat. */
export function listReceivers(deps: ReceiverDeps, options: Options) {
  const fromOf = new Map(options.alerts.receivers.map(({ name, from }) => [name, from]))
  return testedOf(deps, options, null).map(({ name, type, target }) => ({
    name,
    type,
    target,
    from: fromOf.get(name) ?? null,
  }))
}

function testedOf(deps: ReceiverDeps, { alerts }: Options, testDeps: TestDeps | null): Tested[] {
  const receivers = alerts.receivers.map((config): Tested => {
    const { name } = config
    const receiver = createReceiver(deps, config)
    const test = async (ends: AbortSignal) =>
      testDeps === null ? receiver.check(ends) : receiver.send(testAlert(testDeps, name), ends)
    const { type, target, timeoutMs } = receiver
    return { name, type, target, timeoutMs, test, check: (ends) => receiver.check(ends) }
  })
  const heartbeats = alerts.heartbeats.map((config): Tested => {
    const { name } = config
    const request = createHeartbeatRequest(deps, config)
    const test = (ends: AbortSignal) => testHeartbeat(request, healthyVerdictsOf(config), testDeps, ends)
    const { target, timeoutMs } = request
    return { name, type: 'heartbeat', target, timeoutMs, test, check: (ends) => request.check(ends) }
  })
  return [...receivers, ...heartbeats]
}

/** A test must not say that all is well where it is not. */
async function testHeartbeat(
  request: HeartbeatRequest,
  healthyVerdicts: readonly string[],
  deps: TestDeps | null,
  ends: AbortSignal,
): Promise<Sent> {
  const situation = deps?.situation()
  if (situation === undefined) return request.check(ends)
  const isHealthy = situation.isReady && healthyVerdicts.includes(situation.verdict)
  if (isHealthy || request.hasUnhealthyUrl) return request.send(situation, isHealthy, ends)
  const sent = await request.check(ends)
  if (sent.kind === 'failed') return sent
  return { ...sent, detail: `The gateway is not healthy, so no request was sent. ${sent.detail}` }
}

async function run(
  clock: Clock,
  { name, type, target, timeoutMs }: Tested,
  { step, stop }: { step: (ends: AbortSignal) => Promise<Sent>; stop: AbortSignal },
): Promise<AlertTest> {
  const startedMs = clock.monotonic()
  const sent = await tryOnce(clock, { timeoutMs }, step, stop)
  const tookMs = Math.round(clock.monotonic() - startedMs)
  const about = { name, type, target, tookMs }
  if (sent.kind === 'failed') return { ...about, ok: false, detail: sent.why, act: sent.act }
  const { detail, warning } = sent
  if (warning === null) return { ...about, ok: true, detail, act: null }
  return { ...about, ok: false, detail: warning, act: 'Check `recipients`: the others got the alert.' }
}

function testAlert({ gateway, page, version, newId, clock, situation }: TestDeps, receiver: string): Alert {
  const { verdict, sentence } = situation()
  return {
    id: newId(),
    isTest: true,
    gateway: gateway(),
    version,
    receiver,
    createdAt: clock.now(),
    headline: `This is a test of the receiver "${receiver}". Nothing needs to be done.`,
    verdict,
    sentence,
    changes: [],
    omitted: 0,
    open: 0,
    heldBack: null,
    digest: null,
    page: page(),
  }
}
