import { describe, expect, test } from 'vitest'
import type { GatewayEvent } from '../../../../src/domain/event.ts'
import {
  createStoredSessions,
  type OpenedSession,
  type SessionClient,
} from '../../../../src/ingest/broker/stored-sessions/stored-sessions.ts'
import { createMemoryIntakeSpool } from '../../../support/memory-intake-spool.ts'
import { collect, ended, openSpoolWorld, type SpoolWorld } from '../../../support/open-spool.ts'
import { ourTimeOf } from '../../../support/our-time.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const settingMs = 2 * 24 * hourMs
/** What a client of MQTT 3.1.1 asks for without Clean Session. */
const bySetting = Number.POSITIVE_INFINITY

type Options = { sessionExpiryMs?: number; offsetMs?: () => number | null }

/** The sessions of a gateway on a real spool that can be restarted. */
async function openSessions({ sessionExpiryMs = settingMs, offsetMs = () => 0 }: Options = {}) {
  let spools: SpoolWorld = await openSpoolWorld()
  const { clock } = spools
  let setting = sessionExpiryMs
  const events: GatewayEvent[] = []
  const create = () =>
    createStoredSessions(
      { spool: spools.spool, clock, ourTime: ourTimeOf(offsetMs, clock), emit: (one) => events.push(one) },
      { sessionsMax: 100, unreleasedMax: 10, unreleasedTotalMax: 100, sessionExpiryMs: setting },
    )
  let sessions = create()
  await sessions.restore()

  async function open(start: SessionClient['start'], expiryMs: number, clientId = 'van') {
    return sessions.open({ clientId, identity: null, owner: 'depot', start, expiryMs })
  }

  /** Connects and breaks the connection; the rest of what is stored is written. */
  async function visit(start: SessionClient['start'], expiryMs: number, clientId = 'van'): Promise<boolean> {
    const { session, present } = await open(start, expiryMs, clientId)
    sessions.closed(session)
    await ended(spools.spool)
    return present
  }

  async function restart({ awayMs = 0, sessionExpiryMs: next = setting } = {}): Promise<void> {
    sessions.close()
    await spools.spool.close()
    await clock.advance(awayMs)
    setting = next
    spools = await spools.reopen()
    sessions = create()
    await sessions.restore()
  }

  return {
    clock,
    open,
    visit,
    restart,
    get sessions() {
      return sessions
    },
    /** Adds a message that is not released, in a group of its own. */
    async addMessage({ session }: OpenedSession, messageId: number) {
      session.add(messageId, 1)
      await ended(spools.spool)
    },
    /** The values of all records, by their names. */
    async records(): Promise<Record<string, Buffer>> {
      await ended(spools.spool)
      const all = await collect(spools.spool.sessionRecords())
      return Object.fromEntries(all.map(({ key, value }) => [key, value]))
    },
    async put(name: string, value: Buffer) {
      spools.spool.putSession(name, value)
      await ended(spools.spool)
    },
    ended: () => ended(spools.spool),
  }
}

describe('a CONNECT', () => {
  test.each([
    [0, []],
    [hourMs, ['session van']],
  ])(
    '[MQTT5-3.1.2-4] with Clean Start and expiry %d is answered after one durable write',
    async (expiryMs, names) => {
      const spool = createMemoryIntakeSpool({ commits: 'by hand' })
      const { clock } = await openSpoolWorld()
      const sessions = createStoredSessions(
        { spool, clock, ourTime: ourTimeOf(undefined, clock), emit: () => undefined },
        { sessionsMax: 9, unreleasedMax: 9, unreleasedTotalMax: 9, sessionExpiryMs: settingMs },
      )
      await sessions.restore()
      const client = { clientId: 'van', identity: null, owner: 'depot', expiryMs: hourMs } as const
      const opening = sessions.open({ ...client, start: 'resume' })
      spool.commit()
      const { session } = await opening
      session.add(7, 1)
      sessions.closed(session)
      spool.commit()
      let answered = false
      const again = sessions.open({ ...client, start: 'clean', expiryMs }).then(() => (answered = true))
      await clock.advance(1)
      expect([answered, spool.open]).toEqual([false, 1])
      spool.commit()
      await again
      expect((await collect(spool.sessionRecords())).map(({ key }) => key)).toEqual(names)
    },
  )

  test('[MQTT5-3.1.2-5] without Clean Start and with expiry 0 resumes what is stored until its end', async () => {
    const depot = await openSessions()
    const first = await depot.open('resume', hourMs)
    await depot.addMessage(first, 7)
    depot.sessions.closed(first.session)
    const { session, present, expiryMs } = await depot.open('resume', 0)
    expect([present, expiryMs, session.holds(7, 1)]).toEqual([true, 0, true])
    depot.sessions.closed(session)
    expect(await depot.records()).toEqual({})
    expect(depot.sessions.counters()).toMatchObject({ sessions: 0, sessionsExpired: 0 })
    expect(await depot.visit('resume', hourMs)).toBe(false)
  })

  test('with expiry 0 ends what was stored, also where the gateway dies before the connection', async () => {
    const depot = await openSessions()
    const first = await depot.open('resume', hourMs)
    await depot.addMessage(first, 7)
    depot.sessions.closed(first.session)
    expect((await depot.open('resume', 0)).present).toBe(true)
    await depot.restart()
    await depot.clock.advance(minuteMs)
    expect(await depot.records()).toEqual({})
    expect(await depot.visit('resume', hourMs)).toBe(false)
    expect(Object.keys(await depot.records())).toEqual(['session van'])
  })

  test('that takes over from a connection with expiry 0 finds no session', async () => {
    const depot = await openSessions()
    await depot.visit('resume', hourMs)
    const first = await depot.open('resume', 0)
    const second = await depot.open('resume', hourMs)
    expect([first.present, second.present]).toEqual([true, false])
    depot.sessions.closed(first.session)
    depot.sessions.closed(second.session)
    await depot.restart()
    expect(await depot.visit('resume', hourMs)).toBe(true)
  })

  test('that takes over leaves the session of the other one to it', async () => {
    const depot = await openSessions()
    const first = await depot.open('resume', hourMs)
    const second = await depot.open('resume', 0)
    expect([second.present, second.session === first.session]).toEqual([true, true])
    depot.sessions.closed(first.session)
    expect(depot.sessions.counters()).toMatchObject({ sessions: 1 })
    depot.sessions.closed(second.session)
    expect(depot.sessions.counters()).toMatchObject({ sessions: 0 })
  })
})

describe('the expiry', () => {
  test('is that of the last CONNECT, whichever version it has', async () => {
    const depot = await openSessions()
    await depot.visit('resume', bySetting)
    await depot.visit('resume', hourMs)
    await depot.clock.advance(hourMs)
    expect(await depot.visit('resume', bySetting)).toBe(true)
    await depot.clock.advance(24 * hourMs)
    expect(await depot.visit('resume', hourMs)).toBe(true)
    await depot.clock.advance(hourMs + 1)
    expect(await depot.visit('resume', bySetting)).toBe(false)
  })

  test('is durable before the CONNECT is answered, where it changes', async () => {
    const depot = await openSessions()
    await depot.visit('resume', bySetting)
    await depot.open('resume', hourMs)
    const stored = await depot.records()
    expect(stored['session van']).toHaveLength(12)
    await depot.restart({ awayMs: 3 * hourMs })
    expect(await depot.visit('resume', hourMs)).toBe(false)
  })

  test('of a refused CONNECT changes nothing', async () => {
    const depot = await openSessions()
    await depot.visit('resume', bySetting)
    depot.sessions.lost()
    await expect(depot.open('resume', 5000)).rejects.toThrow('not read again')
    await depot.sessions.restore()
    await depot.clock.advance(hourMs)
    expect(await depot.visit('resume', bySetting)).toBe(true)
  })
})

describe('a DISCONNECT', () => {
  test.each([
    ['shorter', 5000, 5000],
    ['longer', 2 * hourMs, 2 * hourMs],
    ['longer than session_expiry', 2 * settingMs, settingMs],
  ])('may make the expiry %s', async (_what, askedMs, grantedMs) => {
    const depot = await openSessions()
    const { session } = await depot.open('resume', hourMs)
    expect(depot.sessions.changeExpiry(session, askedMs)).toBe(grantedMs)
    depot.sessions.closed(session)
    await depot.ended()
    await depot.restart()
    await depot.clock.advance(grantedMs)
    expect(await depot.visit('resume', askedMs)).toBe(true)
    await depot.clock.advance(grantedMs + 1)
    expect(await depot.visit('resume', askedMs)).toBe(false)
  })

  test('that comes before the end of its connection ends the session for the next CONNECT', async () => {
    const depot = await openSessions()
    const first = await depot.open('resume', hourMs)
    depot.sessions.changeExpiry(first.session, 0)
    expect((await depot.open('resume', hourMs)).present).toBe(false)
    depot.sessions.closed(first.session)
    expect(depot.sessions.counters()).toMatchObject({ sessions: 1 })
  })

  test('of a connection that was taken over changes nothing', async () => {
    const depot = await openSessions()
    const first = await depot.open('resume', hourMs)
    const second = await depot.open('resume', hourMs)
    expect(depot.sessions.changeExpiry(first.session, 0)).toBe(hourMs)
    depot.sessions.closed(first.session)
    depot.sessions.closed(second.session)
    expect(await depot.visit('resume', hourMs)).toBe(true)
  })
})

describe('a restart', () => {
  test('counts a short expiry from its end: the time on the disk may be older', async () => {
    const depot = await openSessions()
    await depot.visit('resume', 10 * minuteMs)
    await depot.restart({ awayMs: hourMs })
    await depot.clock.advance(10 * minuteMs)
    expect(await depot.visit('resume', 10 * minuteMs)).toBe(true)
    await depot.restart({ awayMs: hourMs })
    await depot.clock.advance(10 * minuteMs + 1)
    expect(await depot.visit('resume', 10 * minuteMs)).toBe(false)
  })

  test('counts a longer expiry from the time on the disk, and what that may lack', async () => {
    const depot = await openSessions()
    const kept = await depot.open('resume', hourMs)
    // The time of use was written at 60 minutes.
    await depot.clock.advance(hourMs + 2.5 * minuteMs)
    expect(kept.present).toBe(false)
    await depot.restart({ awayMs: hourMs - 1 })
    expect(await depot.visit('resume', hourMs)).toBe(true)
    await depot.restart({ awayMs: hourMs + hourMs / 20 + minuteMs + 1 })
    expect(await depot.visit('resume', hourMs)).toBe(false)
  })

  test('ends no session by the time on the disk while our time is not known', async () => {
    let offset: number | null = null
    const depot = await openSessions({ offsetMs: () => offset })
    await depot.visit('resume', hourMs)
    await depot.restart({ awayMs: 24 * hourMs })
    expect(await depot.visit('resume', hourMs)).toBe(true)
  })

  test('counts from the last CONNECT, also where it changes the expiry of a session that was long unused', async () => {
    const depot = await openSessions()
    await depot.visit('resume', 24 * hourMs)
    await depot.clock.advance(20 * hourMs)
    await depot.open('resume', hourMs)
    await depot.restart({ awayMs: minuteMs })
    expect(await depot.visit('resume', hourMs)).toBe(true)
  })

  test('ends no session by a time that was written while our time was not known', async () => {
    const yearsMs = 20_000 * 24 * hourMs
    // A clock without a battery, before the network sets it.
    let offset: number | null = null
    const depot = await openSessions({ offsetMs: () => offset })
    await depot.visit('resume', hourMs)
    await depot.restart({ awayMs: yearsMs })
    offset = 0
    expect(await depot.visit('resume', hourMs)).toBe(true)
    await depot.restart({ awayMs: 24 * hourMs })
    expect(await depot.visit('resume', hourMs)).toBe(false)
  })

  test('counts from the time of the last use that is written as soon as our time is known', async () => {
    let offset: number | null = null
    const depot = await openSessions({ offsetMs: () => offset })
    await depot.visit('resume', hourMs)
    const { present } = await depot.open('resume', hourMs, 'bus')
    expect(present).toBe(false)
    offset = 0
    await depot.clock.advance(minuteMs)
    await depot.ended()
    await depot.restart({ awayMs: 24 * hourMs })
    expect(await depot.visit('resume', hourMs)).toBe(false)
    expect(await depot.visit('resume', hourMs, 'bus')).toBe(false)
  })

  test('with a shorter session_expiry shortens those that are stored', async () => {
    const depot = await openSessions()
    await depot.visit('resume', 24 * hourMs)
    await depot.visit('resume', bySetting, 'bus')
    await depot.restart({ sessionExpiryMs: hourMs })
    await depot.clock.advance(hourMs + minuteMs + 1)
    expect(depot.sessions.counters()).toMatchObject({ sessions: 0, sessionsExpired: 2 })
  })

  test('with a longer session_expiry prolongs those of MQTT 3.1.1 only', async () => {
    const depot = await openSessions({ sessionExpiryMs: hourMs })
    await depot.visit('resume', hourMs)
    await depot.visit('resume', bySetting, 'bus')
    await depot.restart({ sessionExpiryMs: settingMs })
    await depot.clock.advance(24 * hourMs)
    expect(await depot.visit('resume', hourMs)).toBe(false)
    expect(await depot.visit('resume', bySetting, 'bus')).toBe(true)
  })
})

describe('the record of a session', () => {
  test('is read again after the store was lost, and keeps the expiry of the connection', async () => {
    const depot = await openSessions()
    const { session } = await depot.open('resume', hourMs)
    depot.sessions.lost()
    depot.sessions.changeExpiry(session, 5000)
    await depot.sessions.restore()
    depot.sessions.closed(session)
    await depot.restart()
    await depot.clock.advance(5001)
    expect(await depot.visit('resume', hourMs)).toBe(false)
  })
})
