import { describe, expect, test } from 'vitest'
import { createWindowWatch } from '../../../src/ingest/bridges/session-risks/window-watch.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

describe('the window of a broker', () => {
  /** A minute in which each commit acknowledges `size` messages. */
  async function run(sizeOf: (commit: number) => number, commits = 2000) {
    const clock = createFakeClock()
    const found: (number | null)[] = []
    const watch = createWindowWatch(clock, (messages) => found.push(messages))
    const minute = async (size: (commit: number) => number) => {
      for (let commit = 0; commit < commits; commit += 1) {
        if (commit === commits - 1) await clock.advance(60_000)
        for (let outstanding = 1; outstanding <= size(commit); outstanding += 1) watch.taken(outstanding)
        watch.flushed()
      }
    }
    await minute(sizeOf)
    return { found, minute }
  }

  test('is small where commit after commit has the same few messages', async () => {
    const { found, minute } = await run(() => 20)
    expect(found).toEqual([20])
    await minute(() => 500)
    expect(found).toEqual([20, null])
  })

  test.each<[string, (commit: number) => number, number?]>([
    ['the number is large', () => 100],
    ['it is reached seldom', (commit) => (commit % 50 === 0 ? 20 : 3)],
    ['messages come one by one', () => 1],
    ['there are few commits', () => 20, 100],
  ])('is not where %s', async (_name, sizeOf, commits) => {
    expect((await run(sizeOf, commits)).found).toEqual([])
  })
})
