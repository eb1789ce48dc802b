import { expect, test } from 'vitest'
import { costOf, createWaitingList } from '../../../src/ingest/intake/waiting-messages.ts'
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

test('the properties of a message that waits count towards the bound', () => {
  const plain = messageOf({ n: 1 })
  const userProperties = { name: 'x'.repeat(500), other: 'y'.repeat(300) }
  const properties = {
    contentType: 'a'.repeat(100),
    responseTopic: 'b'.repeat(10),
    correlation: 'c'.repeat(20),
  }
  expect(costOf({ ...plain, userProperties }) - costOf(plain)).toBe(
    500 + 300 + 'name'.length + 'other'.length,
  )
  expect(costOf({ ...plain, properties }) - costOf(plain)).toBe(130)
  const list = createWaitingList({ messagesMax: 10, bytesMax: 1000 })
  list.add({ ...plain, userProperties }, null)
  expect(list.full()).toBe(true)
  list.take()
  expect(list.full()).toBe(false)
})
