import { describe, expect, test } from 'vitest'
import type { GatewayEvent } from '../../../../src/domain/event.ts'
import {
  createStoredSessions,
  type OpenedSession,
  type SessionClient,
} from '../../../../src/ingest/broker/stored-sessions/stored-sessions.ts'
import { closedFault } from '../../../../src/spool/spool-errors.ts'
import { rowsBeside } from '../../../support/case-rows.ts'
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

/** The sessions of processes that end without a stop, on a spool that the test commits. */
async function openByHand() {
  const spool = createMemoryIntakeSpool({ commits: 'by hand' })
  const { clock } = await openSpoolWorld()
  const limits = { sessionsMax: 9, unreleasedMax: 9, unreleasedTotalMax: 9, sessionExpiryMs: settingMs }

  async function process() {
    const ourTime = ourTimeOf(undefined, clock)
    const sessions = createStoredSessions({ spool, clock, ourTime, emit: () => undefined }, limits)
    await sessions.restore()
    const client = { clientId: 'van', identity: null, owner: 'depot', expiryMs: 24 * hourMs } as const
    return { ...sessions, connect: () => sessions.open({ ...client, start: 'resume' }) }
  }

  /** Connects and breaks the connection. */
  async function visited({
    connect,
    closed,
  }: Pick<Awaited<ReturnType<typeof process>>, 'connect' | 'closed'>) {
    const opening = connect()
    spool.commit()
    const opened = await opening
    closed(opened.session)
    return opened
  }

  /** What sweeps write meanwhile is durable. */
  async function away(ms: number): Promise<void> {
    await clock.advance(ms)
    spool.commit()
  }

  return { spool, clock, process, visited, away }
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

  test('[MQTT-4.1.0-2] that resumes what was long unused is answered when this use is durable, and a power cut leaves the session', async () => {
    const depot = await openByHand()
    const first = await depot.process()
    await depot.visited(first)
    await depot.away(20 * hourMs)
    let answered = false
    const resuming = first.connect().finally(() => (answered = true))
    await depot.clock.advance(1)
    expect([answered, depot.spool.open]).toEqual([false, 1])
    depot.spool.commit()
    expect((await resuming).present).toBe(true)
    // The power is cut, and comes back on the next day.
    await depot.away(20 * hourMs)
    expect((await depot.visited(await depot.process())).present).toBe(true)
  })

  test('whose use could not be written is refused, and so is the next one until the use is durable', async () => {
    const depot = await openByHand()
    const { connect, lost, restore, ...first } = await depot.process()
    await depot.visited({ connect, ...first })
    await depot.away(20 * hourMs)
    for (let failures = 0; failures < 2; failures += 1) {
      const answer = connect().then(
        () => 'accepted',
        () => 'refused',
      )
      depot.spool.fail(closedFault())
      expect(await answer).toBe('refused')
      lost()
      await restore()
    }
    expect((await depot.visited({ connect, ...first })).present).toBe(true)
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
})

/** Steps that are separated by commas: see the rows. */
const stories = rowsBeside(import.meta.filename) as { rule: string; steps: string }[]

const unitsMs = { ms: 1, s: 1000, m: minuteMs, h: hourMs, d: 24 * hourMs }

/** Of a text such as `1h1ms`. */
function durationMs(text: string): number {
  if (text === 'setting') return bySetting
  const parts = text.matchAll(/(\d+)(ms|[smhd])/g)
  return [...parts].reduce((sum, [, count, unit]) => sum + Number(count) * unitsMs[unit as 'ms'], 0)
}

describe('the expiry', () => {
  test.each(stories)('$rule', async ({ steps }) => {
    let offset: number | null = 0
    const depot = await openSessions({ offsetMs: () => offset })
    let last: OpenedSession | null = null
    const wanted = steps.split(/,\s+/)
    const found: string[] = []
    for (const step of wanted) {
      let result = step
      const [verb = '', ...words] = step.replace(':', '').split(' ')
      const [first = '', second = ''] = words
      if (verb === 'wait') await depot.clock.advance(durationMs(first))
      else if (verb === 'time') {
        offset = first === 'known' ? 0 : null
      } else if (verb === 'restart') {
        const setting = first === 'with' ? { sessionExpiryMs: durationMs(second) } : {}
        await depot.restart({ awayMs: first === 'after' ? durationMs(second) : 0, ...setting })
      } else if (verb === 'disconnect') {
        depot.sessions.changeExpiry(last!.session, durationMs(first))
        depot.sessions.closed(last!.session)
      } else if (verb === 'expired') {
        result = `expired ${depot.sessions.counters().sessionsExpired}`
      } else {
        const clientId = words.length === 3 ? first : 'van'
        const [expiry = ''] = words.slice(-2)
        last = await depot.open('resume', durationMs(expiry), clientId)
        if (verb === 'visit') depot.sessions.closed(last.session)
        result = `${step.split(':')[0]}: ${last.present ? 'resumed' : 'new'}`
      }
      found.push(result)
      await depot.ended()
    }
    expect(found).toEqual(wanted)
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
