import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { createAckOutput } from '../../../../../src/ingest/broker/gate/acks/ack-output.ts'
import { puback, pubrec } from '../../../../../src/ingest/broker/gate/acks/ack-writer.ts'
import { createFakeClock } from '../../../../support/fake-clock.ts'

test('an ack has its reason code, and none for 0', () => {
  const socket = Object.assign(new PassThrough(), {
    destroySoon: () => undefined,
    setKeepAlive: () => undefined,
  })
  let freed = 0
  const output = createAckOutput(
    {
      socket,
      clock: createFakeClock(),
      writer: { add: () => undefined },
      gate: {
        version5: { quota: { free: () => (freed += 1) } },
        writeAcks: () => undefined,
        resumeReading: () => undefined,
        acksNotRead: () => undefined,
      },
    },
    { ackTimeoutMs: 1000 },
  )
  output.addAck(puback, 0x0102, 0)
  output.addAck(pubrec, 3, 0x87)
  output.addPingResponse()
  output.addAck(puback, 4, 0)
  output.write()
  expect([...(socket.read() as Buffer)]).toEqual([0x40, 2, 1, 2, 0x50, 3, 0, 3, 0x87, 0xd0, 0, 0x40, 2, 0, 4])
  expect(freed).toBe(3)
  // More than the buffer holds at first.
  for (let id = 1; id <= 300; id += 1) output.addAck(puback, id, id % 2 === 0 ? 0 : 0x87)
  output.write()
  const expected = Array.from({ length: 300 }, (_, index) => index + 1).flatMap((id) =>
    id % 2 === 0 ? [0x40, 2, id >> 8, id & 0xff] : [0x40, 3, id >> 8, id & 0xff, 0x87],
  )
  expect([...(socket.read() as Buffer)]).toEqual(expected)
})
