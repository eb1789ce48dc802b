import { expect, test } from 'vitest'
import type { GatewayEvent } from '../../../src/domain/event.ts'
import { createSetupReport } from '../../../src/ingest/jetstream/stream-setup/setup-report.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { natsOptions } from '../../support/nats-world.ts'

test('a durable that was created ends as a risk after an hour, and begins anew with each', async () => {
  const clock = createFakeClock()
  const events: GatewayEvent[] = []
  const report = createSetupReport(
    { clock, emit: (event) => void events.push(event) },
    natsOptions({ urls: ['nats://127.0.0.1:4222'] }),
  )
  const kinds = () => events.map(({ kind }) => kind)
  report.created(0, 0)
  expect(kinds()).toEqual([])
  report.created(0, 5)
  await clock.advance(1_800_000)
  report.created(1, null)
  await clock.advance(3_599_000)
  expect(kinds()).toEqual(['message_source_at_risk', 'message_source_at_risk'])
  await clock.advance(2000)
  expect(kinds().at(-1)).toBe('message_source_safe')
  expect(kinds()).toHaveLength(3)
  report.close()
})
