// attempts.ts: what is tried once, each with its expected result, against one daemon. Entry file of this folder.
//
//   attempt           what an attempt is, and a trial at the MQTT listener
//   connect-attempts  CONNECT: malformed, other protocols, passwords
//   publish-attempts  after CONNECT: topics, packets, subscriptions, wills, take-over
//   file-attempts     files and log

import { messageOf } from '../../../src/std/gateway-error.ts'
import type { HostileWorld } from '../hostile-world.ts'
import type { Transport } from '../route.ts'
import type { Attempt } from './attempt.ts'
import { connectAttempts } from './connect-attempts.ts'
import { fileAttempts } from './file-attempts.ts'
import { publishAttempts } from './publish-attempts.ts'

export type AttemptReport = Pick<Attempt, 'who' | 'where' | 'what' | 'expected'> & {
  transport: Transport
  seen: string
}

/** Files and log last: they show what the others left. */
export const attempts: readonly Attempt[] = [...connectAttempts, ...publishAttempts, ...fileAttempts]

/** Over `some`, and those that name their transports over these. */
export async function runAttempts(
  world: HostileWorld,
  some: readonly Transport[],
  progress: (report: AttemptReport) => void = () => undefined,
): Promise<AttemptReport[]> {
  const reports: AttemptReport[] = []
  for (const attempt of attempts)
    for (const transport of attempt.where === 'mqtt' ? (attempt.only ?? some) : (['tcp'] as const)) {
      const { who, where, what, expected } = attempt
      const seen = await attempt
        .act(world, transport)
        .catch((error: unknown) => `failed: ${messageOf(error)}`)
      const report = { who, where, what, expected, transport, seen }
      reports.push(report)
      progress(report)
    }
  return reports
}

export function isAsExpected({ seen, expected }: AttemptReport): boolean {
  return seen === expected
}
