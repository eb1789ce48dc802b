// The memory of a body gets no other body while a connection may still read it.

import { describe, expect, test } from 'vitest'
import { createBodySlots } from '../../../src/delivery/transport/body-slots.ts'
import { eventually } from '../../support/eventually.ts'
import { httpAnswer, startRawService } from '../../support/raw-service.ts'
import { acceptedBoth, createTransportWorld, ids } from '../../support/transport-world.ts'

const { open, send } = createTransportWorld()

const textOf = (bytes: number, letter: string) =>
  `{"batchId":"b","timestamp":1,"data":[${ids
    .map((id) => `{"payloadId":"${id}","filler":"${letter.repeat(bytes / 2)}"}`)
    .join()}]}`

describe('two providers over http', () => {
  test.each([8, 12])(
    'no byte of one goes out on the connection of the other, which answered before it read (%i MiB)',
    async (mebibytes) => {
      const bytes = mebibytes * 1024 ** 2
      let reading = false
      const early = await startRawService({
        onData({ socket }) {
          if (reading) return
          socket.pause()
          socket.write(httpAnswer(403, {}))
        },
      })
      const other = await startRawService({
        onData({ socket, bodyBytes }) {
          if (bodyBytes() >= textOf(bytes, 'N').length) socket.end(httpAnswer(200, acceptedBoth))
        },
      })
      const [south, north] = [open(early.url), open(other.url)]
      const { outcome } = await send(south, { text: textOf(bytes, 'S') })
      expect(outcome).toMatchObject({ kind: 'unauthorized', status: 403 })

      // The service of the first provider reads on while the second one sends.
      const sending = send(north, { text: textOf(bytes, 'N'), timeoutMs: 30_000 })
      reading = true
      for (const { socket } of early.connections) socket.resume()
      expect((await sending).outcome).toMatchObject({ kind: 'answered', accepted: 'all' })
      const [mine] = early.connections
      await eventually(() => mine === undefined || mine.socket.closed || mine.bodyBytes() >= bytes)
      expect(mine?.received().includes('NNNN')).toBe(false)
      expect(mine?.received().includes('SSSS')).toBe(true)
      await south.close()
      await north.close()
    },
    // Two bodies of this size are signed and sent in this process: 13 s alone, more beside other tests.
    90_000,
  )
})

describe('a slot', () => {
  test('is used again only after it was given back', () => {
    const slots = createBodySlots()
    const first = slots.take(10)
    expect(slots.take(10)).not.toBe(first)
    slots.giveBack(first)
    expect(slots.take(10)).toBe(first)
  })
})
