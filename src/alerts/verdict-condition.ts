// verdict-condition.ts: the verdict as a condition `VERDICT`, for alerts only: the gateway receives nothing
// or delivers nothing, whatever the cause is, for more than a minute. A start may take some of that.

import type { Clock, EpochMs } from '../std/clock.ts'
import { verdictCode } from './config.ts'
import type { OpenCondition, Situation } from './types.ts'

const lastsMs = 60_000

const specs: Readonly<Record<string, Pick<OpenCondition, 'severity' | 'what'>>> = {
  not_receiving: { severity: 'critical', what: 'The gateway receives nothing.' },
  not_delivering: { severity: 'error', what: 'The gateway delivers nothing.' },
}

/** Returns the function that adds it. */
export function createVerdictCondition(clock: Clock): (situation: Situation) => Situation {
  let present: { verdict: string; since: EpochMs; sinceMs: number } | null = null
  /** When each of them ended last. */
  const ends = new Map<string, EpochMs>()
  return (given) => {
    const situation: Situation = {
      ...given,
      endOf(of) {
        const at = of.code === verdictCode ? ends.get(of.key ?? '') : undefined
        return at === undefined ? given.endOf(of) : { at, isSure: true }
      },
    }
    const { verdict, sentence, conditions } = situation
    const spec = specs[verdict]
    if (present !== null && present.verdict !== verdict) {
      ends.set(present.verdict, clock.now())
      present = null
    }
    if (spec === undefined) return situation
    present ??= { verdict, since: clock.now(), sinceMs: clock.monotonic() }
    if (clock.monotonic() - present.sinceMs < lastsMs) return situation
    const condition: OpenCondition = {
      code: verdictCode,
      key: verdict,
      ...spec,
      since: present.since,
      count: 1,
      why: sentence,
      causes: [],
      act: 'Run `telemetry-gateway status` on the gateway, and follow its conditions.',
    }
    return { ...situation, conditions: [...conditions, condition] }
  }
}
