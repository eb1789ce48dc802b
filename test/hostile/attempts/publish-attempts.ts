// publish-attempts.ts: attempts after CONNECT: topics, packets out of place, subscriptions, retained messages, wills,
// and the client id of another.

import { createDevice, publishBytes } from '../../support/mqtt-device.ts'
import { publishPacket3, subscribePacket3 } from '../../support/mqtt3-packets.ts'
import { fleetUser, otherUser } from '../hostile-world.ts'
import { nextPayload, positionOf, trialOf, tryMqtt, type Attempt, type Trial } from './attempt.ts'

const who = 'an anonymous client'
const subscribe = subscribePacket3(1, [['#', 1]])

/** The rest of what is wrong with a packet is in test/ingest/mqtt; here is a row for each reason of its own. */
const packets: readonly Attempt[] = (
  [
    ['publishes below $SYS', 'closed (bad_topic)', publishPacket3({ topic: '$SYS/broker' })],
    ['publishes with packet identifier 0', 'closed (no_packet_id)', publishPacket3({ messageId: 0 })],
    ['subscribes to a/#/b', 'closed (bad_topic_filter)', subscribePacket3(1, [['a/#/b', 0]])],
    // The log shows it, and file-attempts.ts reads the log.
    ['publishes to a topic of control characters', 'PUBACK, alive', publishPacket3({ topic: '\u001b[2J' })],
  ] as const
).map(([what, seen, sends]) => trialOf(who, what, `CONNACK 0, ${seen}`, { connect: {}, sends }))

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
      return tryMqtt(world, transport, { connect: {}, sends: subscribe })
    },
  },
  {
    who: 'a subscriber to everything',
    where: 'mqtt',
    what: 'waits for a message that another client publishes then',
    expected: 'CONNACK 0, SUBACK 1, PUBACK, alive',
    act(world, transport) {
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

export const publishAttempts: readonly Attempt[] = [...packets, ...deliveries, ...wills, ...takeOvers]
