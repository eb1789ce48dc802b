// What device-stories.test.ts does not tell of stored sessions.

import { expect, test } from 'vitest'
import type { IngestOptions } from '../../../../src/ingest/ingest.ts'
import { eventually } from '../../../support/eventually.ts'
import { openIngest } from '../../../support/ingest-world.ts'
import { openSpoolWorld } from '../../../support/open-spool.ts'

/** On a real spool. */
async function openDepot(options: Partial<IngestOptions>) {
  const { spool, clock } = await openSpoolWorld()
  const world = await openIngest(spool, { clock, ...options })
  /** Connects, breaks the connection, and resolves with whether the session was there. */
  async function visit(clientId: string, from = '127.0.0.1'): Promise<boolean> {
    const device = await world.connection(clientId, { from })
    const { sessionPresent } = await device.connect({ clean: false })
    device.destroy()
    await eventually(() => world.ingest.counters().connections === 0)
    return sessionPresent
  }
  return { spool, clock, world, visit, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() }
}

test('a stop ends the look for expired sessions before the spool is closed', async () => {
  await using depot = await openDepot({ sessionExpiryMs: 10_000 })
  const { world, spool, clock } = depot
  await depot.visit('van')
  await world.ingest.stopAccepting()
  await spool.close()
  // A timer that writes would throw here: the spool is closed, the connections are not.
  await clock.advance(60_000)
  expect(world.ingest.counters()).toMatchObject({ sessions: 1, sessionsExpired: 0 })
})

test('a client that opens sessions without end removes its own and not those of others', async () => {
  await using depot = await openDepot({ sessionsMax: 20 })
  const fleet = Array.from({ length: 12 }, (_, index) => `truck-${index}`)
  for (const truck of fleet) await depot.visit(truck, `127.0.1.${truck.slice(6)}`)
  for (let index = 0; index < 40; index += 1) await depot.visit(`new-${index}`, '127.0.0.9')
  for (const truck of fleet) expect(await depot.visit(truck, '127.0.0.2')).toBe(true)
  expect(await depot.visit('another', '127.0.0.3')).toBe(false)
  expect(depot.world.ingest.counters()).toMatchObject({ sessions: 20, sessionsEvicted: 33 })
  const events = depot.world.events.filter(({ kind }) => kind === 'session_evicted')
  const owners = new Set(events.slice(0, 32).map((event) => 'owner' in event && event.owner))
  expect(owners).toEqual(new Set(['127.0.0.9']))
})
