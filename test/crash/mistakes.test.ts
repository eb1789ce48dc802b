// The test of the test: a daemon on a store that makes a mistake must be found guilty, and for the reason that
// belongs to it.

import { describe, expect, test } from 'vitest'
import { runCrashes, whyNoPowerCuts, type CrashOptions } from './harness.ts'

const timeout = 60_000
const noPowerCuts = await whyNoPowerCuts()

type Guilty = Omit<CrashOptions, 'seed'> & { what: string; finding: RegExp }

const guilty: Guilty[] = [
  {
    what: 'calls a write durable before it is begun',
    mistake: 'early-ack',
    place: 'during-write',
    kills: 3,
    powerCuts: 0,
    serviceDown: true,
    finding: /^acked lost/,
  },
  {
    what: 'sends a batch before its claim is durable',
    mistake: 'early-seal',
    place: 'committed-before-answer',
    kills: 8,
    powerCuts: 0,
    finding: /^duplicatesAcrossBatches/,
  },
  {
    what: 'forgets at a restart what it took in',
    mistake: 'forget-window',
    place: 'after-write-before-ack',
    kills: 3,
    powerCuts: 0,
    finding: /^twice/,
  },
]

describe('found guilty is a gateway that', () => {
  test.each(guilty)('$what', { timeout }, async ({ finding, ...options }) => {
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
    expect(violations).toContainEqual(expect.stringMatching(/^acked lost/))
  })
})
