import { describe, expect, test } from 'vitest'
import { GatewayError } from '../../../src/std/gateway-error.ts'
import { turn } from '../../support/fake-clock.ts'
import { openIngest, textOf } from '../../support/ingest-world.ts'
import { auto, byHand } from '../../support/memory-intake-spool.ts'
import { publishBytes } from '../../support/mqtt-device.ts'

const fault = new GatewayError('SPOOL_WRITE_FAILED', { what: 'w.', why: 'w.', act: 'a.' })

describe('acked means durable', () => {
  test.each([1, 2] as const)(
    '[MQTT3-4.8.0-2] no ack is given when the write fails; the connection is closed (QoS %i)',
    async (qos) => {
      const spool = byHand()
      await using world = await openIngest(spool)
      const device = await world.device('truck')
      const other = await world.device('bus')
      device.publish({ topic: 't', payload: 'a', messageId: 1, qos })
      await spool.ended(1)
      spool.fail(fault)
      await device.gone()
      expect(device.acks).toEqual([])
      expect(world.events.filter(({ kind }) => kind === 'client_dropped')).toHaveLength(1)
      expect(other.closed).toBe(false)

      const again = await world.device('truck')
      again.publish({ topic: 't', payload: 'a', messageId: 1, qos, dup: true })
      await spool.ended(2)
      spool.commit()
      await again.acked(1)
      expect(spool.payloads.map(textOf)).toEqual(['a'])
    },
  )
})

describe('after the end', () => {
  test('messages sent before a device closed are accepted, also if reading was paused then', async () => {
    const spool = auto()
    await using world = await openIngest(spool, { inFlightMax: 2 })
    const device = await world.device('truck')
    spool.setCongested(true)
    for (let id = 1; id <= 9; id += 1) device.publish({ topic: 't', payload: `m${id}`, messageId: id })
    device.end()
    // By the time these were answered, the end of the first has arrived too.
    for (let n = 1; n <= 5; n += 1) await world.device(`other ${n}`)
    spool.setCongested(false)
    await spool.ended(9)
    await device.gone()
    expect(world.ingest.counters().received).toBe(9)
  })
})

describe('sent again', () => {
  test('QoS 2: a device that restarted and uses an identifier again loses no message', async () => {
    const spool = auto()
    await using world = await openIngest(spool)
    const first = await world.device('truck')
    first.destroy()
    const device = await world.connection('truck')
    await device.connect({ clean: false })
    const quiet = { topic: 't', messageId: 1, qos: 2 } as const
    device.publish({ ...quiet, payload: 'untimed before the reboot' })
    await device.acked(1)
    device.publish({ ...quiet, payload: 'untimed after the reboot' })
    await device.until(() => spool.payloads.length === 2)
    expect(spool.payloads.map(textOf)).toEqual(['untimed before the reboot', 'untimed after the reboot'])
  })

  test('QoS 2: a message whose write failed is new when it is sent again, also without DUP', async () => {
    const spool = byHand()
    await using world = await openIngest(spool)
    const message = publishBytes({ topic: 't', payload: 'untimed a', messageId: 5, qos: 2 })
    for (const end of ['fail', 'commit'] as const) {
      const device = await world.connection('truck')
      const connected = device.connect({ clean: false })
      // The session is stored first.
      if (end === 'fail') await spool.ended(1)
      spool.commit()
      await connected
      device.sendBytes(message)
      await spool.ended(end === 'fail' ? 2 : 3)
      if (end === 'fail') spool.fail(fault)
      else spool.commit()
      if (end === 'fail') {
        await device.gone()
        continue
      }
      await device.acked(1)
      // PUBREL.
      await spool.ended(4)
      spool.commit()
      await device.acked(2)
    }
    expect(spool.payloads.map(textOf)).toEqual(['untimed a'])
  })
})

describe('while the spool accepts no messages', () => {
  test('acks are held in order and given when it resumes; QoS 0 is counted as dropped', async () => {
    const spool = auto()
    await using world = await openIngest(spool)
    const device = await world.device('truck')
    spool.setHold('spool_full')
    for (let id = 1; id <= 5; id += 1) device.publish({ topic: 't', payload: `m${id}`, messageId: id })
    device.publish({ topic: 't', payload: 'lost', qos: 0 })
    device.send({ cmd: 'pingreq' })
    await device.until((received) => received.some(({ cmd }) => cmd === 'pingresp'))
    expect(device.acks).toEqual([])
    expect(world.ingest.counters()).toMatchObject({ held: 5, dropped: 1 })
    expect(world.events).toContainEqual({
      kind: 'messages_dropped',
      reason: 'spool_full',
      detail: 'The spool is full.',
      count: 1,
    })
    spool.setHold(null)
    expect((await device.acked(5)).map(({ messageId }) => messageId)).toEqual([1, 2, 3, 4, 5])
    expect(world.ingest.counters()).toMatchObject({ received: 6, mapped: 5, dropped: 1, held: 0, acked: 5 })
  })

  test('at the bound sockets are not read, and every message is acknowledged later', async () => {
    const spool = auto()
    await using world = await openIngest(spool, { heldMessagesMax: 50, inFlightMax: 65_535 })
    spool.setHold('disk_low')
    const devices = await Promise.all([1, 2, 3].map((n) => world.device(`d${n}`)))
    const each = 5000
    for (const device of devices)
      for (let id = 1; id <= each; id += 1)
        device.publish({ topic: 't', payload: `${device.clientId} ${id} ${'x'.repeat(300)}`, messageId: id })
    while (world.ingest.counters().held < 50) await turn()
    // New devices are still answered; a dozen of them take longer than reading all of this would.
    for (let n = 1; n <= 12; n += 1) await world.device(`late ${n}`)
    // One read of a socket is 64 KiB and what it had buffered; the rest waits outside.
    expect(world.ingest.counters().held).toBeLessThanOrEqual(3 * 500)
    spool.setHold(null)
    for (const device of devices) await device.acked(each)
    expect(spool.payloads).toHaveLength(3 * each)
  })
})
