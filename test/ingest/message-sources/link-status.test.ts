import { expect, test } from 'vitest'
import type { GatewayEvent } from '../../../src/domain/event.ts'
import { createLinkStatus } from '../../../src/ingest/message-sources/link-status.ts'
import { createFakeClock, fakeStartMs } from '../../support/fake-clock.ts'

const fault = { reason: 'refused', detail: 'No.', act: 'Ask.' }

function openStatus() {
  const clock = createFakeClock()
  const events: GatewayEvent[] = []
  const emit = (event: GatewayEvent) => void events.push(event)
  const status = createLinkStatus({ clock, emit }, { messageSource: 'depot', clientId: 'gw-1' })
  return { clock, status, kinds: () => events.map(({ kind }) => kind), events }
}

test('a link has the time of its state, its losses and its messages over all connections', async () => {
  const { clock, status } = openStatus()
  expect(status.view()).toMatchObject({ state: 'waiting', losses: 0, lastFault: null, lastMessageMs: null })
  await clock.advance(10)
  status.connected('mqtt://a:1883', { present: true, removedFilters: [] })
  status.took(11)
  status.took(12)
  await clock.advance(10)
  // The same state keeps its time.
  status.set('connected')
  expect(status.view()).toEqual({
    clientId: 'gw-1',
    state: 'connected',
    since: fakeStartMs + 10,
    sinceMs: 10,
    sessionPresent: true,
    losses: 0,
    lastFault: null,
    messages: 2,
    lastMessageMs: 12,
  })
  status.lost(fault, 500)
  expect(status.view()).toMatchObject({ state: 'waiting', sinceMs: 20, losses: 1, lastFault: 'No.' })
  status.connected('mqtt://a:1883')
  expect(status.view()).toMatchObject({ state: 'connected', losses: 1, lastFault: null, messages: 2 })
})

test('each change is said once', () => {
  const { status, events, kinds } = openStatus()
  status.connected('mqtt://a:1883', { present: false, removedFilters: ['t/#'] })
  status.lost(fault, 500)
  status.released('engine')
  status.released('engine')
  const link = { messageSource: 'depot', clientId: 'gw-1' }
  expect(kinds()).toEqual(['message_source_connected', 'message_source_lost', 'message_source_released'])
  expect(events).toMatchObject([
    { ...link, url: 'mqtt://a:1883', sessionPresent: false, removedFilters: ['t/#'] },
    { ...link, ...fault, retryInMs: 500 },
    { ...link, session: 'engine' },
  ])
  expect(status.state()).toBe('stopped')
})
