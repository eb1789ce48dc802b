// fault-injection.ts: draws the faults of one request when its head arrives, in the order of fault-plan.ts. A
// random number is drawn only where a rate is set, so the same seed gives the same faults.

import type { FaultPlan } from './fault-plan.ts'

export type Operation = 'single' | 'batch'

export type BodyFault = 'truncated' | 'half' | 'empty' | 'html' | 'huge'

export type InjectedFaults = {
  plan: FaultPlan
  latencyMs: number
  cut: 'before_reading' | 'after_reading' | null
  hang: boolean
  status: number | null
  afterCommit: { latencyMs: number; kind: 'cut' | 'hang' | 'error' | null }
  body: BodyFault | null
}

export type FaultInjector = {
  set(plans: readonly FaultPlan[]): void
  /** The plans, each with the number of requests that used it. */
  show(): readonly (FaultPlan & { used: number })[]
  /** Null when no plan applies. */
  draw(operation: Operation, providerKey: string | null): InjectedFaults | null
}

export function createFaultInjector(random: () => number, plans: readonly FaultPlan[]): FaultInjector {
  let entries = plans.map((plan) => ({ plan, used: 0 }))

  return {
    set(plans) {
      entries = plans.map((plan) => ({ plan, used: 0 }))
    },
    show: () => entries.map(({ plan, used }) => ({ ...plan, used })),
    draw(operation, providerKey) {
      const entry = entries.find(
        ({ plan: { count, only }, used }) =>
          (count === undefined || used < count) &&
          (only.operation === undefined || only.operation === operation) &&
          (only.provider === undefined || only.provider === providerKey),
      )
      if (!entry) return null
      entry.used += 1
      return decide(entry.plan, random)
    },
  }
}

function decide(plan: FaultPlan, random: () => number): InjectedFaults {
  const { cut, after_commit: after, body } = plan
  return {
    plan,
    latencyMs: between(plan.latency, random),
    cut: pick({ before_reading: cut.before_reading, after_reading: cut.after_reading }, random),
    hang: happens(plan.hang, random),
    status: plan.always ?? statusOf(plan, random),
    afterCommit: {
      latencyMs: between(after.latency, random),
      kind: pick({ cut: after.cut, hang: after.hang, error: after.error }, random),
    },
    body: pick(
      { truncated: body.truncated, half: body.half, empty: body.empty, html: body.html, huge: body.huge },
      random,
    ),
  }
}

function statusOf(plan: FaultPlan, random: () => number): number | null {
  const status = pick(plan.status, random)
  return status === null ? null : Number(status)
}

export function happens(rate: number, random: () => number): boolean {
  return rate > 0 && random() < rate
}

/** At most one of them, each at its rate. */
function pick<Kind extends string>(rates: Record<Kind, number>, random: () => number): Kind | null {
  const kinds = (Object.keys(rates) as Kind[]).filter((kind) => rates[kind] > 0)
  if (kinds.length === 0) return null
  let rest = random()
  for (const kind of kinds) {
    rest -= rates[kind]
    if (rest < 0) return kind
  }
  return null
}

function between(range: { min: number; max: number } | undefined, random: () => number): number {
  if (!range) return 0
  return range.min === range.max ? range.min : range.min + random() * (range.max - range.min)
}
