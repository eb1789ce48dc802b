import { describe, expect, test } from 'vitest'
import { createUntimedResends } from '../../../src/ingest/intake/untimed-resends.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { createRandom, type Random } from '../../support/random.ts'
import { rowsBeside } from '../../support/case-rows.ts'
import { messageOf } from '../../support/mapping-world.ts'
import { openIngest } from '../../support/ingest-world.ts'
import type { Device } from '../../support/mqtt-device.ts'
import { openSpoolWorld, type SpoolWorld } from '../../support/open-spool.ts'

const parked = 'untimed parked'

const rows = rowsBeside(import.meta.filename) as {
  resends: [what: string, steps: string, stored: number, resendsStored: number][]
  quiet: [what: string, steps: string, stored: number][]
}

/** Steps of a device that loses its connections, in front of a gateway on a real spool; resolves with what is counted. */
async function play(steps: string) {
  let spools: SpoolWorld = await openSpoolWorld()
  let world = await openIngest(spools.spool)
  let device: Device | null = null
  let resendsStored = 0
  const cut = async () => {
    device?.destroy()
    await device?.gone()
  }
  for (const step of steps.split(' ')) await take(step)
  const stored = spools.spool.lanes().reduce((sum, { pending }) => sum + pending, 0)
  const { dead, duplicates, ...counters } = world.ingest.counters()
  await world[Symbol.asyncDispose]()
  return { stored, resendsStored: resendsStored + counters.resendsStored, dead, duplicates }

  async function take(step: string): Promise<void> {
    if (step === 'restart') return restart()
    if (step === 'connect') {
      await cut()
      device = await world.connection('van', { releases: false })
      await device.connect()
    } else if (step === 'disconnect') {
      device!.send({ cmd: 'disconnect' })
      await device!.gone()
    } else if (step === 'ping') {
      const { length } = device!.received
      device!.send({ cmd: 'pingreq' })
      await device!.until((received) => received.length > length)
    } else if (step === 'release') {
      const acks = device!.acks.length + 1
      device!.send({ cmd: 'pubrel', messageId: 1 })
      await device!.acked(acks)
    } else {
      const messages = step.split(',')
      const acks = messages.length + device!.acks.length
      for (const text of messages)
        device!.publish({
          topic: 't',
          payload: text.includes('t') ? 'timed' : text.includes('b') ? 'bad' : parked,
          messageId: Number.parseInt(text, 10),
          dup: text.includes('d'),
          qos: text.includes('q') ? 2 : 1,
        })
      await device!.acked(acks)
    }
  }

  async function restart(): Promise<void> {
    await cut()
    resendsStored += world.ingest.counters().resendsStored
    await world.ingest.stopAccepting()
    spools = await spools.reopen()
    await world[Symbol.asyncDispose]()
    world = await openIngest(spools.spool)
  }
}

describe('a message without a device time that arrives with DUP', () => {
  test.each(rows.resends)('%s: %s', async (_what, steps, stored, resendsStored) => {
    expect(await play(steps)).toMatchObject({ stored, resendsStored })
  })

  test('becomes a dead letter beside an equal one only where its identifier is new', async () => {
    expect(await play('connect 1b connect 1bd,2bd')).toMatchObject({
      dead: 2,
      duplicates: 1,
      resendsStored: 1,
    })
  })

  test.each(rows.quiet)('by QoS 2 in a clean session is %s', async (_what, steps, stored) => {
    expect(await play(steps)).toMatchObject({ stored })
  })
})

/**
 * How clients choose identifiers: `counts` up for ever, `restarts` at 1 on each connection, takes the `lowest`
 * that is free.
 */
const ways = ['counts', 'restarts', 'lowest'] as const

type Reading = { n: number; id: number }

/**
 * A client of one connection after the other, whose last messages and acks are lost with each: it sends
 * `parked` again and again, at most `window` without an ack, and resends with DUP. Returns the readings that were taken for
 * duplicates and never stored, and how many were stored twice.
 */
function drive(way: (typeof ways)[number], random: Random, window: number) {
  const resends = createUntimedResends({ clock: createFakeClock(), spool: { note() {}, endMessage() {} } })
  const stored = new Map<number, number>()
  let unacked: Reading[] = []
  let published = 0
  let counter = way === 'counts' ? 1000 : 0
  for (let connection = 0; connection < 40; connection += 1) {
    const link = resends.connect('van', null)
    if (way === 'restarts') counter = 0
    // The first one lasts until a client that uses identifiers again at once has shown it.
    const lengthMax = connection === 0 ? 10 * window : random.below(3 * window)
    /** Acks that are on their way. */
    let acks: Reading[] = []
    const take = (reading: Reading, dup: boolean) => {
      const message = { ...messageOf(parked, { topic: 't', dup }), link, messageId: reading.id }
      const received = { ...message, ordinal: link.received }
      link.received += 1
      if (dup && resends.isDuplicate(received)) resends.enter(received, 'duplicate')
      else {
        resends.enter(received, 'untimed')
        stored.set(reading.n, (stored.get(reading.n) ?? 0) + 1)
      }
      if (connection > 0 && random.chance(0.01)) return
      link.acked = link.received
      acks.push(reading)
    }
    const readAcks = (count: number) => {
      const read = new Set(acks.slice(0, count).map(({ n }) => n))
      unacked = unacked.filter(({ n }) => !read.has(n))
      acks = acks.slice(count)
    }
    const lossAt = connection === 0 ? lengthMax : random.below(lengthMax + 1)
    for (const reading of unacked) take(reading, true)
    for (let sent = 0; sent < lengthMax + window; sent += 1) {
      if (unacked.length >= window) readAcks(1 + random.below(acks.length))
      if (unacked.length >= window) break
      const reading = { n: (published += 1), id: nextId() }
      unacked.push(reading)
      // What is behind the loss still leaves the client, and does not arrive.
      if (sent < lossAt) take(reading, false)
      if (random.chance(0.3)) readAcks(random.below(acks.length + 1))
    }
    resends.disconnect(link, false)
  }
  const lost = Array.from({ length: published }, (_, index) => index + 1).filter(
    (n) => !stored.has(n) && !unacked.some((reading) => reading.n === n),
  )
  return { published, lost, twice: [...stored.values()].filter((times) => times > 1).length }

  function nextId(): number {
    const used = new Set(unacked.map(({ id }) => id))
    if (way === 'lowest') counter = 0
    do counter += 1
    while (used.has(counter))
    return counter
  }
}

describe('parked vehicles that lose their connections', () => {
  test.each(ways)('lose no reading, however they choose packet identifiers (%s)', (way) => {
    let published = 0
    for (let seed = 1; seed <= 300; seed += 1) {
      const outcome = drive(way, createRandom(seed), 1 + (seed % 8))
      expect(outcome.lost, `seed ${seed}`).toEqual([])
      // A client that counts up is never in doubt.
      expect(way === 'counts' ? outcome.twice : 0, `seed ${seed}`).toBe(0)
      published += outcome.published
    }
    expect(published).toBeGreaterThan(20_000)
  })
})
