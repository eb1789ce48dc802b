import { describe, expect, test } from 'vitest'
import type { GatewayEvent } from '../../../src/domain/event.ts'
import type { MessageSource } from '../../../src/ingest/message-sources/message-sources.ts'
import { createSilenceWatch } from '../../../src/ingest/message-sources/silence-watch.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

function openWatch(unheardAfterMs: number, partitioned = false) {
  const clock = createFakeClock()
  const events: GatewayEvent[] = []
  let lastMs: number | null = null
  let connectedAtMs: number | null = 0
  let reconnects = 0
  let role: 'active' | 'standby' = 'standby'
  const state = () => (connectedAtMs === null ? 'waiting' : 'connected')
  const source = {
    name: 'depot',
    traits: { partitioned },
    view: () => ({ links: [{ state: state(), sinceMs: connectedAtMs ?? 0 }], partitions: [{ role }] }),
    reconnect: () => (reconnects += 1),
  } as unknown as MessageSource
  const feed = { lastMessageAtMs: () => lastMs } as never
  const emit = (event: GatewayEvent) => void events.push(event)
  const watch = createSilenceWatch({ clock, isHeld: () => false, emit }, [
    { source, feed, silentAfterMs: 600_000, unheardAfterMs },
  ])
  watch.start()
  return {
    clock,
    kinds: () => events.map(({ kind }) => kind),
    events,
    isSilent: () => watch.isSilent(source),
    reconnects: () => reconnects,
    setActive: () => (role = 'active'),
    heard: () => (lastMs = clock.monotonic()),
    setConnected: (isConnected: boolean) => (connectedAtMs = isConnected ? clock.monotonic() : null),
  }
}

describe('a message source without messages', () => {
  test('is silent after its time, connects again once in each, and is heard with the next message', async () => {
    const watched = openWatch(600_000)
    watched.heard()
    await watched.clock.advance(590_000)
    expect(watched.kinds()).toEqual([])
    await watched.clock.advance(20_000)
    expect(watched.events).toMatchObject([{ kind: 'message_source_silent', neverHeard: false }])
    await watched.clock.advance(580_000)
    expect(watched.reconnects()).toBe(1)
    await watched.clock.advance(20_000)
    expect(watched.reconnects()).toBe(2)
    watched.heard()
    await watched.clock.advance(10_000)
    expect(watched.kinds().at(-1)).toBe('message_source_heard')
    expect(watched.isSilent()).toBe(false)
  })

  test('is not silent while it is not connected, and gets its time after it is', async () => {
    const watched = openWatch(600_000)
    watched.setConnected(false)
    await watched.clock.advance(1_200_000)
    watched.setConnected(true)
    await watched.clock.advance(590_000)
    expect(watched.kinds()).toEqual([])
    await watched.clock.advance(20_000)
    expect(watched.kinds()).toEqual(['message_source_silent'])
  })
})

describe('a message source that shares partitions with others', () => {
  test('is not silent while the others get them, and is while they should come to it', async () => {
    const watched = openWatch(60_000, true)
    await watched.clock.advance(1_200_000)
    expect(watched.kinds()).toEqual([])
    watched.setActive()
    await watched.clock.advance(10_000)
    expect(watched.kinds()).toEqual(['message_source_silent'])
  })
})

describe('one connection among several', () => {
  function openLinks(count: number, partitioned = false) {
    const clock = createFakeClock()
    const events: GatewayEvent[] = []
    const reconnected: (string | null)[] = []
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
      view: () => ({ links, partitions: [{ role: 'active' }] }),
      reconnect: (clientId: string | null) => reconnected.push(clientId),
    } as unknown as MessageSource
    const feed = {
      lastMessageAtMs: () => Math.max(...links.map(({ lastMessageMs }) => lastMessageMs ?? 0)),
    } as never
    const emit = (event: GatewayEvent) => void events.push(event)
    const watch = createSilenceWatch({ clock, isHeld: () => false, emit }, [
      { source, feed, silentAfterMs: 600_000, unheardAfterMs: 600_000 },
    ])
    watch.start()
    return {
      clock,
      events,
      reconnected,
      isSilent: () => watch.isSilent(source),
      async messages(of: readonly number[], times: number, everyMs: number) {
        for (let n = 0; n < times; n += 1) {
          for (const index of of) {
            links[index]!.messages += 1
            links[index]!.lastMessageMs = clock.monotonic()
          }
          await clock.advance(everyMs)
        }
      },
    }
  }

  test('is silent where the others have many messages; it alone connects again, and is heard', async () => {
    const opened = openLinks(3)
    await opened.messages([0, 1, 2], 10, 10_000)
    await opened.messages([0, 1], 58, 10_000)
    expect(opened.events).toEqual([])
    await opened.messages([0, 1], 4, 10_000)
    expect(opened.events).toMatchObject([
      { kind: 'message_source_silent', clientId: 'gw-3', neverHeard: false },
    ])
    expect(opened.reconnected).toEqual(['gw-3'])
    expect(opened.isSilent()).toBe(true)
    await opened.messages([2], 1, 10_000)
    expect(opened.events.at(-1)).toMatchObject({ kind: 'message_source_heard', clientId: 'gw-3' })
    expect(opened.isSilent()).toBe(false)
  })

  test('is not silent where there are too few messages for all', async () => {
    const opened = openLinks(3)
    await opened.messages([0, 1], 25, 60_000)
    expect(opened.events).toEqual([])
  })
})
