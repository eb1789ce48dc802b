import { expect, test } from 'vitest'
import { readDelivery, replySubject, type Delivery } from '../../../src/ingest/jetstream/delivered-message.ts'

const empty = (): Delivery => ({ deliveries: 0, streamSeq: 0, consumerSeq: 0, storedAtMs: 0, pending: 0 })

const said = { deliveries: 3, streamSeq: 812_345, consumerSeq: 77, storedAtMs: 1_795_410_567_931, pending: 6 }

test.each([
  '$JS.ACK.$MQTT_msgs.gw-0.3.812345.77.1795410567931190198.6',
  '$JS.ACK.hub.Xy7.$MQTT_msgs.gw-0.3.812345.77.1795410567931190198.6',
  '$JS.ACK._.Xy7.$MQTT_msgs.gw-0.3.812345.77.1795410567931190198.6.aB3',
])('%s is read', (reply) => {
  const delivery = empty()
  expect(readDelivery(reply, delivery)).toBe(true)
  expect(delivery).toEqual(said)
})

test.each([
  '',
  '_INBOX.abc',
  '$JS.ACK.a.b',
  '$JS.ACK.s.d.1.0.0.1795410567931190198.6',
  '$JS.ACK.s.d.x.x.x.x.x',
])('"%s" is no delivery', (reply) => {
  expect(readDelivery(reply, empty())).toBe(false)
})

test('the place of a message says where it is acknowledged', () => {
  const subject = replySubject({ stream: 'S', durable: 'd-1' }, said)
  const delivery = empty()
  expect(readDelivery(subject, delivery)).toBe(true)
  expect(delivery).toMatchObject({ streamSeq: 812_345, consumerSeq: 77 })
})
