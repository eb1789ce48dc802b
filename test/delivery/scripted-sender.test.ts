// The scripted sender of tests gives the outcomes that the real thread gives with real sockets.

import { afterAll, describe, expect, test } from 'vitest'
import { createSenderWorker } from '../../src/delivery/transport/sender-worker.ts'
import { transportOptions } from '../../src/delivery/transport/transport-options.ts'
import type { AttemptResult, Transport } from '../../src/delivery/transport/transport.ts'
import { systemClock } from '../../src/std/clock.ts'
import { providerOptions } from '../support/delivery-world.ts'
import { createScriptedSender } from '../support/scripted-sender.ts'
import { acceptAll, breakdown, startScriptedService } from '../support/scripted-service.ts'
import type { Script } from '../support/scripted-service.ts'
import { createTransportWorld } from '../support/transport-world.ts'

const { send } = createTransportWorld()
const senderWorker = createSenderWorker()
afterAll(() => senderWorker.close())

const rows: [name: string, script: Script][] = [
  ['accepts everything', acceptAll],
  [
    'fails one',
    ({ payloadIds: [one = '', two = ''] }) => breakdown({ accepted: [one], failed: [{ payloadId: two }] }),
  ],
  ['answers HTML', () => ({ status: 200, body: '<html></html>' })],
  ['answers more than is allowed', () => ({ status: 200, body: ' '.repeat(70_000) })],
  ['cuts its answer off', () => ({ status: 200, body: '{"acc', truncated: true })],
  ['refuses with 400', () => ({ status: 400, body: { message: 'bad' } })],
  ['refuses with 403', () => ({ status: 403 })],
  ['answers 409', () => ({ status: 409, body: { requestId: 'r' } })],
  ['answers 503 with Retry-After', () => ({ status: 503, headers: { 'retry-after': '7' } })],
  ['resets the connection', () => 'reset'],
  ['does not answer', () => 'hang'],
]

/** The detail of a failed connection comes from the system. */
const withoutDetail = ({ outcome }: AttemptResult) =>
  outcome.kind === 'unreachable' ? { kind: outcome.kind, reason: outcome.reason } : outcome

async function sendTo(open: () => Transport, operation: 'batch' | 'single'): Promise<AttemptResult> {
  const transport = open()
  try {
    return await send(transport, { operation })
  } finally {
    await transport.close()
  }
}

describe.each(['batch', 'single'] as const)('for the operation %s, a service that', (operation) => {
  test.each(rows)('%s', async (_name, script) => {
    const service = await startScriptedService(script)
    const options = (url: string) => transportOptions(providerOptions(url, { timeoutMs: 300 }), {})
    const real = await sendTo(() => senderWorker.open(options(service.url)), operation)
    await service.close()
    const scripted = createScriptedSender({ clock: systemClock }, script)
    const result = await sendTo(() => scripted.senderWorker.open(options(scripted.service.url)), operation)
    expect(withoutDetail(result)).toEqual(withoutDetail(real))
    expect(scripted.service.received.map(({ body }) => body)).toEqual(
      service.received.map(({ body }) => body),
    )
  })
})
