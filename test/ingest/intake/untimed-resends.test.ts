import { describe, expect, test } from 'vitest'
import { rowsBeside } from '../../support/case-rows.ts'
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
