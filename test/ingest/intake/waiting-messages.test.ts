import { expect, test } from 'vitest'
import { createWaitingList } from '../../../src/ingest/intake/waiting-messages.ts'
import { messageOf } from '../../support/mapping-world.ts'
import { ourTimeOf } from '../../support/our-time.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

test('a message that waits keeps its own arrival and bytes, while the broker uses its message again', async () => {
  const clock = createFakeClock()
  const { stamp } = ourTimeOf(() => 0, clock)
  const list = createWaitingList({ messagesMax: 10, bytesMax: 1000 })
  const message = messageOf({ n: 1 }, { topic: 'telemetry/v1/truck-1' })
  stamp(message, clock.now())
  const [arrivedAt, text] = [message.arrivedAt, message.bytes.toString()]
  list.add(message, null)
  await clock.advance(5000)
  message.arrivedAt = clock.now()
  message.arrival!.monotonicMs = clock.monotonic()
  message.bytes.fill(0)
  const waited = list.take()?.message
  expect(waited).toMatchObject({ arrivedAt, arrival: { monotonicMs: 0, offsetMs: 0 } })
  expect(waited?.bytes.toString()).toBe(text)
})
