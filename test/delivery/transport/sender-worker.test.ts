// The loss of the thread that sends, and memory that changed before it was sent.

import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { SenderWorker } from '../../../src/delivery/transport/sender-worker.ts'
import { createSenderWorker } from '../../../src/delivery/transport/sender-worker.ts'
import type { Transport } from '../../../src/delivery/transport/transport.ts'
import { transportOptions } from '../../../src/delivery/transport/transport-options.ts'
import type { GatewayEvent } from '../../../src/domain/event.ts'
import { providerOptions } from '../../support/delivery-world.ts'
import { eventually } from '../../support/eventually.ts'
import { acceptAll, startScriptedService } from '../../support/scripted-service.ts'
import type { ScriptedService } from '../../support/scripted-service.ts'
import { contentOf, createTransportWorld, batchText } from '../../support/transport-world.ts'

const { send } = createTransportWorld()
let events: GatewayEvent[]
let worker: SenderWorker
let service: ScriptedService
let transport: Transport

beforeEach(async () => {
  events = []
  worker = createSenderWorker({ emit: (event) => void events.push(event) })
  service = await startScriptedService()
  transport = open()
})

afterEach(async () => {
  await worker.close()
  await service.close()
})

const open = () => worker.open(transportOptions(providerOptions(service.url), {}))

/** A submission by a closed transport is a programmer's mistake, which ends the thread. */
async function sendPoison() {
  const closed = open()
  await closed.close()
  return send(closed, { batchId: 'poison' })
}

const interrupted = (losses: number) => ({
  outcome: { kind: 'interrupted', losses },
  written: true,
  entries: null,
})

describe('when the thread is lost', () => {
  test('the batches in flight are interrupted, and a new thread sends the next ones', async () => {
    service.answer(() => 'hang')
    const other = send(transport, { batchId: 'other' })
    await eventually(() => service.open() === 1)
    expect(await sendPoison()).toMatchObject(interrupted(1))
    expect(await other).toMatchObject(interrupted(1))
    expect(events).toMatchObject([
      { kind: 'sender_thread_lost', batches: 2, losses: 1, why: expect.stringContaining('opened before') },
    ])
    expect(worker.threadsLost()).toBe(1)

    service.answer(acceptAll)
    expect(await send(transport, { batchId: 'other' })).toMatchObject({ outcome: { kind: 'answered' } })
  })

  test('a batch that was in flight at two losses in a row interrupts no other batch again', async () => {
    for (const losses of [1, 2]) {
      service.answer(() => 'hang')
      const other = send(transport, { batchId: `other-${losses}` })
      await eventually(() => service.open() === 1)
      expect(await sendPoison()).toMatchObject(interrupted(losses))
      expect(await other).toMatchObject(interrupted(1))
      await eventually(() => service.open() === 0)
    }
    const other = send(transport, { batchId: 'other-3' })
    await eventually(() => service.open() === 1)
    expect(await Promise.all([sendPoison(), sendPoison()])).toMatchObject([interrupted(3), interrupted(4)])
    service.answer(acceptAll)
    expect(await send(transport, { batchId: 'other-1' })).toMatchObject({ outcome: { kind: 'answered' } })
    expect(service.open()).toBe(1)
    await transport.close()
    expect((await other).outcome.kind).not.toBe('interrupted')
    expect(events.map((event) => 'losses' in event && event.losses)).toEqual([1, 2, 3, 4])
  })

  test('on purpose, by close(), nothing is reported', async () => {
    service.answer(() => 'hang')
    const sending = send(transport)
    await eventually(() => service.open() === 1)
    await worker.close()
    expect(await sending).toMatchObject({ outcome: { kind: 'aborted' }, written: true })
    expect(events).toEqual([])
  })
})

describe('bytes that change in memory before they are sent', () => {
  test('are not sent', async () => {
    await send(transport)
    const content = contentOf(batchText)
    let memory: Buffer = Buffer.alloc(0)
    const now = Date.now()
    const sending = transport.submit({
      batchId: 'b' as never,
      operation: 'batch',
      content: {
        ...content,
        writeBody(target) {
          memory = target
          return content.writeBody(target)
        },
      },
      // Read between the checksum of the body and its way to the thread. A later change can come when the
      // thread has compared them already.
      get credentials() {
        memory.write('X', 1)
        return { accessKeyId: 'A', secretAccessKey: 'B' }
      },
      signingAt: now,
      startedAt: now,
      stop: new AbortController().signal,
    })
    expect(await sending).toMatchObject({ outcome: { kind: 'body_changed' }, written: false, bytesSent: 0 })
    expect(service.received).toHaveLength(1)
    expect(events).toEqual([{ kind: 'body_changed', batchId: 'b' }])
    // The same memory is not used for the next batch.
    const before = memory

    expect(await send(transport)).toMatchObject({ outcome: { kind: 'answered' } })
    expect(before.subarray(0, 2).toString()).toBe('{X')
  })
})
