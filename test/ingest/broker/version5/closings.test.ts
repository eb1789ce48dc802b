// A client of MQTT 5 gets DISCONNECT with the reason at each bound that closes its connection, and the
// connection leaves the limits as soon as the client has closed its side.

import { expect, test } from 'vitest'
import type { IngestOptions } from '../../../../src/ingest/ingest.ts'
import { closedFault } from '../../../../src/spool/spool-errors.ts'
import { eventually } from '../../../support/eventually.ts'
import { createFakeClock } from '../../../support/fake-clock.ts'
import { openIngest } from '../../../support/ingest-world.ts'
import { byHand, type MemoryIntakeSpool } from '../../../support/memory-intake-spool.ts'
import { openVersion, type VersionDevice } from '../../../support/mqtt-versions.ts'
import { publishPacket } from '../../../support/mqtt5-packets.ts'

type Parts = {
  device: VersionDevice
  /** Of another client, over the same listener. */
  other: VersionDevice
  spool: MemoryIntakeSpool
  clock: ReturnType<typeof createFakeClock>
  /** Resolves when a message waits for a full store. */
  held: () => Promise<void>
  /** Resolves when a part of a packet waits for the rest. */
  partial: () => Promise<void>
}

type Closing = {
  reason: string
  code: number
  options?: Partial<IngestOptions>
  cause: (parts: Parts) => Promise<void>
}

const large = publishPacket({ topic: 't', payload: Buffer.alloc(20_000, 120) })

const closings: readonly Closing[] = [
  {
    reason: 'held_full',
    code: 0x97,
    options: { heldMessagesMax: 1 },
    async cause({ device, other, spool, held }) {
      spool.setDeadLettersFull(true)
      other.send(publishPacket({ topic: 't', payload: 'bad' }))
      await held()
      device.send(publishPacket({ topic: 't', payload: 'bad' }))
    },
  },
  {
    reason: 'too_many_qos2',
    code: 0x97,
    options: { unreleasedMax: 2 },
    async cause({ device, spool }) {
      for (const messageId of [1, 2]) {
        device.send(publishPacket({ topic: 't', qos: 2, messageId, payload: `${messageId}` }))
        await spool.ended(messageId)
        spool.commit()
        await device.next('pubrec', messageId - 1)
      }
      device.send(publishPacket({ topic: 't', qos: 2, messageId: 3, payload: '3' }))
    },
  },
  {
    reason: 'packet_too_slow',
    code: 0x83,
    async cause({ device, partial, clock }) {
      device.send(large.subarray(0, -1))
      await partial()
      await clock.advance(40_000)
    },
  },
  {
    reason: 'spool_write_failed',
    code: 0x83,
    async cause({ device, spool }) {
      device.send(publishPacket({ topic: 't', messageId: 1, payload: 'one' }))
      await spool.ended(1)
      spool.fail(closedFault())
    },
  },
  {
    reason: 'partial_packets_full',
    code: 0x97,
    options: { partialBytesMax: 1 },
    async cause({ device }) {
      device.send(large.subarray(0, -1))
    },
  },
]

test.each(closings)(
  '[MQTT5-4.13.2-1] $reason closes with its code of DISCONNECT, at once',
  async ({ reason, code, options, cause }) => {
    const spool = byHand()
    // Nothing but `cause` moves it, so the end does not wait for the time that a client has to close.
    const clock = createFakeClock()
    await using world = await openIngest(spool, {
      ...options,
      clock,
    })
    const url = `mqtt://127.0.0.1:${world.port}`
    await using other = await openVersion(5, { url })
    await other.connect({ clientId: 'other' })
    await using device = await openVersion(5, { url })
    await device.connect()
    const counters = () => world.ingest.counters()
    await cause({
      device,
      other,
      spool,
      clock,
      held: () => eventually(() => counters().held > 0),
      partial: () => eventually(() => counters().partialBytes > 0),
    })
    expect(await device.gone()).toMatchObject({ code })
    expect(device.received.at(-1)).toMatchObject({ type: 'disconnect' })
    expect(Object.fromEntries(counters().droppedByReason)).toEqual({ [reason]: 1 })
    await eventually(() => counters().connections === 1)
    expect(counters()).toMatchObject({ partialBytes: 0 })
    expect(other.closed).toBe(false)
  },
)
