// The test of the crash test: a daemon on a store with a mistake must break a rule, and the right one.

import { describe, expect, test } from 'vitest'
import { runCrashes, whyNoPowerCuts, type CrashOptions } from './harness.ts'

const timeout = 180_000
const noPowerCuts = await whyNoPowerCuts()

type Mistaken = Omit<CrashOptions, 'seed'> & { what: string; finding: RegExp }

const mistaken: Mistaken[] = [
  {
    what: 'reports a write as durable before it starts',
    mistake: 'early-ack',
    place: 'random',
    kills: 2,
    powerCuts: 0,
    serviceDown: true,
    finding: /^lost/,
  },
  {
    what: 'sends a batch before its claim is durable',
    mistake: 'early-seal',
    place: 'committed-before-answer',
    kills: 8,
    powerCuts: 0,
    finding: /^twice/,
  },
  {
    what: 'forgets the dedup window at a restart',
    mistake: 'forget-window',
    place: 'after-write-before-ack',
    kills: 3,
    powerCuts: 0,
    finding: /^twice/,
  },
]

describe('the crash test notices a gateway that', () => {
  test.each(mistaken)('$what', { timeout }, async ({ finding, ...options }) => {
    const { violations } = await runCrashes({ seed: 3, ...options })
    expect(violations).toContainEqual(expect.stringMatching(finding))
  })

  test.skipIf(noPowerCuts !== null)('writes without sync, by a power cut', { timeout }, async () => {
    const options = {
      mistake: 'no-sync',
      place: 'random',
      kills: 0,
      powerCuts: 2,
      serviceDown: true,
    } as const
    const { violations } = await runCrashes({ seed: 3, ...options })
    expect(violations).toContainEqual(expect.stringMatching(/^lost/))
  })
})
