// publish-attempts.ts: attempts after CONNECT: topics, packets out of place, subscriptions, retained messages, wills,
// and the client id of another.

import { createDevice, publishBytes } from '../../support/mqtt-device.ts'
import { fleetUser, otherUser } from '../hostile-world.ts'
import { nextPayload, positionOf, trialOf, tryMqtt, type Attempt, type Trial } from './attempt.ts'

const who = 'an anonymous client'

/** A PUBLISH of QoS 1 with these bytes behind the fixed header. */
const rawPublish = (head: number, ...body: readonly number[]) => Buffer.from([head, body.length, ...body])
const text = (value: string) => [...Buffer.from(value)]
const topicA = [0, 1, 0x61]

const closes = (what: string, reason: string, sends: Buffer) =>
  trialOf(who, what, `CONNACK 0, closed (${reason})`, { connect: {}, sends })
const answers = (what: string, seen: string, sends: Buffer) =>
  trialOf(who, what, `CONNACK 0, ${seen}, alive`, { connect: {}, sends })

const topics: readonly Attempt[] = [
  closes('publishes to a topic with #', 'bad_topic', rawPublish(0x32, 0, 3, ...text('a/#'), 0, 1)),
  closes('publishes to a topic with +', 'bad_topic', rawPublish(0x32, 0, 3, ...text('a/+'), 0, 1)),
  closes('publishes to a topic with a null character', 'bad_topic', rawPublish(0x32, 0, 1, 0, 0, 1)),
  closes('publishes to an empty topic', 'bad_topic', rawPublish(0x32, 0, 0, 0, 1)),
  closes('publishes below $SYS', 'bad_topic', publishBytes({ topic: '$SYS/broker', payload: 'x' })),
  closes(
    'publishes to a topic of 101 levels',
    'bad_topic',
    publishBytes({ topic: 'a/'.repeat(100), payload: 'x' }),
  ),
  closes(
    'publishes to a topic of 5,000 bytes',
    'bad_topic',
    publishBytes({ topic: 'a'.repeat(5000), payload: 'x' }),
  ),
  closes('publishes to a topic that is not UTF-8', 'bad_topic', rawPublish(0x32, 0, 2, 0xc3, 0x28, 0, 1)),
  closes(
    'publishes to a topic with half a surrogate',
    'bad_topic',
    rawPublish(0x32, 0, 3, 0xed, 0xa0, 0x80, 0, 1),
  ),
  closes(
    'publishes to a topic longer than its packet',
    'protocol_error',
    rawPublish(0x32, 0, 200, 0x61, 0, 1),
  ),
  answers('publishes to a topic with U+FFFD', 'PUBACK', rawPublish(0x32, 0, 3, 0xef, 0xbf, 0xbd, 0, 1)),
  answers(
    'publishes to a topic of control characters',
    'PUBACK',
    rawPublish(0x32, 0, 4, 0x1b, 0x5b, 0x32, 0x4a, 0, 1),
  ),
]

const packets: readonly Attempt[] = [
  closes('publishes with QoS 3', 'protocol_error', rawPublish(0x36, ...topicA, 0, 1)),
  closes('publishes with packet identifier 0', 'no_packet_id', rawPublish(0x32, ...topicA, 0, 0)),
  closes('publishes without a packet identifier', 'no_packet_id', rawPublish(0x32, ...topicA)),
  closes('announces a packet of 256 MB', 'packet_too_large', Buffer.from([0x32, 0xff, 0xff, 0xff, 0x7f])),
  closes('sends a length of five bytes', 'malformed_length', Buffer.from([0x30, 0x80, 0x80, 0x80, 0x80, 1])),
  closes('sends CONNACK', 'not_from_client', Buffer.from([0x20, 2, 0, 0])),
  closes('sends SUBACK', 'not_from_client', Buffer.from([0x90, 3, 0, 1, 0])),
  closes('sends PINGRESP', 'not_from_client', Buffer.from([0xd0, 0])),
  closes('sends packet type 0', 'not_from_client', Buffer.from([0, 0])),
  closes('sends packet type 15', 'not_from_client', Buffer.from([0xf0, 0])),
  closes('sends SUBSCRIBE with identifier 0', 'no_packet_id', Buffer.from([0x82, 6, 0, 0, ...topicA, 0])),
  closes('sends PUBREL with identifier 0', 'no_packet_id', Buffer.from([0x62, 2, 0, 0])),
  closes('sends PUBREL with wrong flags', 'protocol_error', Buffer.from([0x60, 2, 0, 1])),
  closes('subscribes with QoS 3', 'protocol_error', Buffer.from([0x82, 6, 0, 1, ...topicA, 3])),
  closes('subscribes to nothing', 'bad_topic_filter', Buffer.from([0x82, 2, 0, 1])),
  closes('subscribes to a/#/b', 'bad_topic_filter', Buffer.from([0x82, 10, 0, 1, 0, 5, ...text('a/#/b'), 0])),
  answers('releases a message that it never sent', 'PUBCOMP', Buffer.from([0x62, 2, 0, 9])),
  answers('subscribes to everything', 'SUBACK 1', Buffer.from([0x82, 6, 0, 1, 0, 1, ...text('#'), 1])),
  answers('subscribes to $SYS/#', 'SUBACK 0', Buffer.from([0x82, 11, 0, 1, 0, 6, ...text('$SYS/#'), 0])),
]

/** Publishes the payload of a number as the device; what it sees ends in `delivered` or `not delivered`. */
function publishes(
  what: string,
  expected: string,
  options: { topic: string; retain?: boolean; qos?: 1 | 2; anonymous?: boolean },
): Attempt {
  const { topic, retain = false, qos = 1, anonymous = false } = options
  return {
    who: anonymous ? who : 'a client of the fleet',
    where: 'mqtt',
    what,
    expected,
    act(world, transport) {
      const payload = nextPayload()
      const sends = publishBytes({ topic, payload: positionOf(world, payload), retain, qos })
      return tryMqtt(world, transport, { ...(anonymous && { connect: {} }), sends, payload })
    },
  }
}

const deliveries: readonly Attempt[] = [
  publishes('publishes as a listed device', 'CONNACK 0, PUBACK, alive, delivered', {
    topic: 'telemetry/v1/truck-3',
  }),
  publishes('publishes a retained message', 'CONNACK 0, PUBACK, alive, delivered', {
    topic: 'telemetry/v1/truck-4',
    retain: true,
  }),
  publishes('publishes under an unlisted name', 'CONNACK 0, PUBACK, alive, not delivered', {
    topic: 'telemetry/v1/invented',
    anonymous: true,
  }),
  publishes(
    'publishes under the name of a property of every object',
    'CONNACK 0, PUBACK, alive, not delivered',
    {
      topic: 'telemetry/v1/__proto__',
      anonymous: true,
    },
  ),
  publishes('publishes under a name with a path', 'CONNACK 0, PUBACK, alive, not delivered', {
    topic: 'telemetry/v1/..%2f..%2fetc',
    anonymous: true,
  }),
  {
    who: 'a subscriber to everything',
    where: 'mqtt',
    what: 'waits for a retained message of another client',
    expected: 'CONNACK 0, SUBACK 1, alive',
    async act(world, transport) {
      const number = nextPayload()
      const retained = publishBytes({
        topic: 'telemetry/v1/truck-5',
        payload: positionOf(world, number),
        retain: true,
      })
      await tryMqtt(world, transport, { sends: retained })
      const subscribe = Buffer.from([0x82, 6, 0, 1, 0, 1, 0x23, 1])
      return tryMqtt(world, transport, { connect: {}, sends: subscribe })
    },
  },
  {
    who: 'a subscriber to everything',
    where: 'mqtt',
    what: 'waits for a message that another client publishes then',
    expected: 'CONNACK 0, SUBACK 1, PUBACK, alive',
    act(world, transport) {
      const subscribe = Buffer.from([0x82, 6, 0, 1, 0, 1, 0x23, 1])
      const publish = publishBytes({
        topic: 'telemetry/v1/truck-5',
        payload: positionOf(world, nextPayload()),
      })
      return tryMqtt(world, transport, { connect: {}, sends: Buffer.concat([subscribe, publish]) })
    },
  },
]

const wills: readonly Attempt[] = [
  {
    who,
    where: 'mqtt',
    what: 'leaves a will with the position of a listed device and drops the connection',
    expected: 'CONNACK 0, left, not delivered',
    act(world, transport) {
      const payload = nextPayload()
      const will = {
        topic: 'telemetry/v1/truck-6',
        payload: Buffer.from(positionOf(world, payload)),
        qos: 1 as const,
        retain: false,
      }
      return tryMqtt(world, transport, { connect: { will }, leaves: true, payload })
    },
  },
]

/** Connects as the user of the fleet, on the plain listener, and lets another connect under its client id. */
function takeOver(who: string, what: string, expected: string, intruder: Trial['connect']): Attempt {
  return {
    who,
    where: 'mqtt',
    what,
    expected,
    async act(world, transport) {
      const clientId = `owner-${nextPayload()}`
      const owner = await createDevice({ port: world.port('tcp'), clientId })
      await owner.connect({ username: fleetUser.name, password: Buffer.from(fleetUser.password) })
      const seen = await tryMqtt(world, transport, { clientId, ...(intruder && { connect: intruder }) })
      const ownerSeen = owner.closed ? 'the owner lost its connection' : 'the owner keeps its connection'
      owner.destroy()
      return `${seen.includes('alive') ? 'accepted' : 'refused'}; ${ownerSeen}`
    },
  }
}

const takeOvers: readonly Attempt[] = [
  takeOver(
    who,
    'connects under the client id of a connected client',
    'refused; the owner keeps its connection',
    {},
  ),
  takeOver(
    'another user',
    'connects under the client id of a connected client',
    'refused; the owner keeps its connection',
    { username: otherUser.name, password: Buffer.from(otherUser.password) },
  ),
  takeOver(
    'a client of the fleet',
    'connects again before its old connection is gone',
    'accepted; the owner lost its connection',
    undefined,
  ),
]

export const publishAttempts: readonly Attempt[] = [
  ...topics,
  ...packets,
  ...deliveries,
  ...wills,
  ...takeOvers,
]
