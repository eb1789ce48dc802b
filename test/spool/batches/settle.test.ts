import { describe, expect, test } from 'vitest'
import { attemptsIn } from '../../../src/domain/settlement.ts'
import { retryKey } from '../../../src/spool/session-state.ts'
import { openSpoolWorld, sealAll } from '../../support/open-spool.ts'

const failure = { payloadId: 'p', errorType: 'Timeout', errorMessage: 'busy', validationErrorDetails: [] }

describe('a settle', () => {
  test('reads the lanes of version 0.1: each step is an attempt of its schedule', async () => {
    const role = { kind: 'retry', schedule: 'Timeout', step: 1 } as const
    expect([...attemptsIn(role)]).toEqual([['Timeout', 2]])
    expect(retryKey(role)).toBe(retryKey({ ...role, counted: { Timeout: 2 } }))
    expect(retryKey(role)).not.toBe(retryKey({ ...role, counted: { Timeout: 1 } }))
  })

  test('opens a bounded number of retry lanes, however the answers change', async () => {
    const { spool, publish } = await openSpoolWorld()
    await publish('a')
    for (let answer = 0; answer < 200; answer += 1) {
      const batch = (await sealAll(spool)).at(-1)!
      await spool.load(batch)
      const retried = { kind: 'retry', schedule: `rule-${answer % 7}`, step: answer % 5, failure } as const
      await spool.settle(batch, { payloads: [retried], requestId: null })
    }
    expect(spool.lanes().length).toBeLessThanOrEqual(1 + 64 + 7 * 5)
    const loaded = await spool.load((await sealAll(spool)).at(-1)!)
    expect(loaded.kind === 'content' && loaded.content.attempts()).toEqual([200])
  })
})
