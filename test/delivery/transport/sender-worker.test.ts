// The loss of the thread that sends.

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
import { createTransportWorld } from '../../support/transport-world.ts'

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
  return send(closed)
}

const interrupted = { outcome: { kind: 'interrupted' }, written: true, entries: null }

describe('when the thread is lost', () => {
  test('the batches in flight are interrupted, and a new thread sends the next ones', async () => {
    service.answer(() => 'hang')
    const other = send(transport)
    await eventually(() => service.open() === 1)
    expect(await sendPoison()).toMatchObject(interrupted)
    expect(await other).toMatchObject(interrupted)
    expect(events).toMatchObject([
      { kind: 'sender_thread_lost', batches: 2, losses: 1, why: expect.stringContaining('opened before') },
    ])
    expect(worker.threadsLost()).toBe(1)

    service.answer(acceptAll)
    expect(await send(transport)).toMatchObject({ outcome: { kind: 'answered' } })
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
