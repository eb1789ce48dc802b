import { describe, expect, test } from 'vitest'
import type { MessageSource } from '../../../src/ingest/message-sources/message-sources.ts'
import { createSilenceWatch } from '../../../src/ingest/message-sources/silence-watch.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

/** A source of `count` connections; each is silent after ten minutes. */
function openWatch(count: number, { unheardAfterMs = 600_000, partitioned = false } = {}) {
  const clock = createFakeClock()
  const reconnected: (string | null)[] = []
  const partition = { role: partitioned ? 'standby' : 'active' }
  const links = Array.from({ length: count }, (_, index) => ({
    clientId: `gw-${index + 1}`,
    state: 'connected',
    sinceMs: 0,
    messages: 0,
    lastMessageMs: null as number | null,
  }))
  const source = {
    name: 'depot',
    traits: { partitioned },
    view: () => ({ links, partitions: [partition] }),
    reconnect: (clientId: string | null) => reconnected.push(clientId),
  } as unknown as MessageSource
  const lastMessageAtMs = () => links.map((link) => link.lastMessageMs).toSorted((a, b) => b! - a!)[0]
  const watch = createSilenceWatch({ clock, isHeld: () => false }, [
    { source, feed: { lastMessageAtMs } as never, silentAfterMs: 600_000, unheardAfterMs },
  ])
  watch.start()
  function heard(index: number): void {
    links[index]!.messages += 1
    links[index]!.lastMessageMs = clock.monotonic()
  }
  return {
    clock,
    states: () => [...watch.states()],
    isSilent: () => watch.isSilent(source),
    reconnected,
    partition,
    link: links[0]!,
    heard,
    async messages(of: readonly number[], times: number, everyMs: number) {
      for (let n = 0; n < times; n += 1) {
        for (const index of of) heard(index)
        await clock.advance(everyMs)
      }
    },
  }
}

describe('a message source without messages', () => {
  test('is silent after its time, connects again once in each, and is heard with the next message', async () => {
    const watched = openWatch(1)
    watched.heard(0)
    await watched.clock.advance(590_000)
    expect(watched.states()).toEqual([])
    await watched.clock.advance(20_000)
    expect(watched.states()).toMatchObject([{ clientId: null, neverHeard: false }])
    await watched.clock.advance(580_000)
    expect(watched.reconnected).toHaveLength(1)
    await watched.clock.advance(20_000)
    expect(watched.reconnected).toHaveLength(2)
    watched.heard(0)
    await watched.clock.advance(10_000)
    expect(watched.states()).toEqual([])
    expect(watched.isSilent()).toBe(false)
  })

  test('is not silent while it is not connected, and gets its time after it is', async () => {
    const watched = openWatch(1)
    watched.link.state = 'waiting'
    await watched.clock.advance(1_200_000)
    Object.assign(watched.link, { state: 'connected', sinceMs: watched.clock.monotonic() })
    await watched.clock.advance(590_000)
    expect(watched.states()).toEqual([])
    await watched.clock.advance(20_000)
    expect(watched.states()).toMatchObject([{ code: 'MESSAGE_SOURCE_SILENT', neverHeard: true }])
  })

  test('is not silent while other gateways get the partitions, and is while they should come to it', async () => {
    const watched = openWatch(1, { unheardAfterMs: 60_000, partitioned: true })
    await watched.clock.advance(1_200_000)
    expect(watched.states()).toEqual([])
    watched.partition.role = 'active'
    await watched.clock.advance(10_000)
    expect(watched.states()).toMatchObject([{ code: 'MESSAGE_SOURCE_SILENT', neverHeard: true }])
  })
})

describe('one connection among several', () => {
  test('is silent where the others have many messages; it alone connects again, and is heard', async () => {
    const watched = openWatch(3)
    await watched.messages([0, 1, 2], 10, 10_000)
    await watched.messages([0, 1], 58, 10_000)
    expect(watched.states()).toEqual([])
    await watched.messages([0, 1], 4, 10_000)
    expect(watched.states()).toMatchObject([{ clientId: 'gw-3', neverHeard: false }])
    expect(watched.reconnected).toEqual(['gw-3'])
    expect(watched.isSilent()).toBe(true)
    await watched.messages([2], 1, 10_000)
    expect(watched.states()).toEqual([])
    expect(watched.isSilent()).toBe(false)
  })

  test('is not silent where there are too few messages for all', async () => {
    const watched = openWatch(3)
    await watched.messages([0, 1], 25, 60_000)
    expect(watched.states()).toEqual([])
  })
})
