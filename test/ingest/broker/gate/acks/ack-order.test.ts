import { expect, test } from 'vitest'
import { openIngest } from '../../../../support/ingest-world.ts'
import { byHand } from '../../../../support/memory-intake-spool.ts'
import { publishBytes } from '../../../../support/mqtt-device.ts'

const pubrel = (messageId: number) => Buffer.from([0x62, 2, 0, messageId])
const qos1 = (messageId: number) => publishBytes({ topic: 't', payload: `m${messageId}`, messageId })
const qos2 = (messageId: number) => publishBytes({ topic: 't', payload: `m${messageId}`, messageId, qos: 2 })

test.each([true, false])(
  'PUBREL with an unknown identifier gets PUBCOMP in its place (clean session: %s)',
  async (clean) => {
    const spool = byHand()
    await using world = await openIngest(spool)
    const device = await world.connection('truck', { releases: false })
    const connected = device.connect({ clean })
    if (!clean) {
      await spool.ended(1)
      spool.commit()
    }
    await connected
    device.sendBytes(Buffer.concat([pubrel(90), Buffer.from([0xc0, 0]), qos1(1), pubrel(91), qos1(2)]))
    await device.until((received) => received.some(({ cmd }) => cmd === 'pingresp'))
    expect(device.received.slice(1).map(({ cmd, messageId }) => [cmd, messageId])).toEqual([
      ['pubcomp', 90],
      ['pingresp', undefined],
    ])
    await spool.ended(clean ? 2 : 3)
    spool.commit()
    await device.acked(4)
    expect(device.acks.slice(1)).toEqual([
      { cmd: 'puback', messageId: 1 },
      { cmd: 'pubcomp', messageId: 91 },
      { cmd: 'puback', messageId: 2 },
    ])
  },
)

test('PUBCOMP of a stored message stays behind the acknowledgements before it and its own write', async () => {
  const spool = byHand()
  await using world = await openIngest(spool)
  const device = await world.connection('truck', { releases: false })
  const connected = device.connect({ clean: false })
  await spool.ended(1)
  spool.commit()
  await connected
  device.sendBytes(qos2(5))
  await spool.ended(2)
  spool.commit()
  await device.acked(1)
  device.sendBytes(Buffer.concat([qos1(6), pubrel(5), pubrel(77), qos2(7)]))
  await spool.ended(5)
  spool.commit()
  await device.acked(5)
  expect(device.acks).toEqual([
    { cmd: 'pubrec', messageId: 5 },
    { cmd: 'puback', messageId: 6 },
    { cmd: 'pubcomp', messageId: 5 },
    { cmd: 'pubcomp', messageId: 77 },
    { cmd: 'pubrec', messageId: 7 },
  ])
})
