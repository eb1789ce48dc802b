// connect-attempts.ts: attempts with CONNECT: malformed ones, other protocols, wrong passwords, borrowed client ids.

import { publishBytes } from '../../support/mqtt-device.ts'
import { connectPacket3 } from '../../support/mqtt3-packets.ts'
import { fleetUser } from '../hostile-world.ts'
import { nextPayload, positionOf, trialOf, tryMqtt, withPassword, type Attempt } from './attempt.ts'

const stranger = 'a stranger'
const user = (username: string, password: string) => ({ username, password: Buffer.from(password) })

/** The rest of what is wrong with a CONNECT is in test/ingest/mqtt; here is a row for each reason of its own. */
const malformed: readonly Attempt[] = (
  [
    ['sends a request of HTTP', 'not_connect', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
    ['has a client id with a null character', 'bad_client_id', connectPacket3({ clientId: 'a\0b' })],
    ['has a user name with a null character', 'bad_user_name', connectPacket3({ userName: 'fle\0et' })],
    ['gives a password without a user name', 'password_without_user', connectPacket3({ password: 'secret' })],
    ['has a will with QoS 3', 'bad_will_qos', connectPacket3({ will: { topic: 'a', payload: 'x', qos: 3 } })],
  ] as const
).map(([what, reason, connect]) => trialOf(stranger, what, `closed (${reason})`, { connect }))

const refusedPassword = 'CONNACK 4, closed (bad_credentials)'

const passwords: readonly Attempt[] = [
  trialOf(stranger, 'speaks a level that does not exist', 'CONNACK 1, closed (unsupported_level)', {
    connect: connectPacket3({ level: 9 }),
  }),
  trialOf('a client of the fleet', 'gives its password', 'CONNACK 0, alive', {}),
  trialOf(stranger, 'gives a wrong password', refusedPassword, { connect: user(fleetUser.name, 'guess') }),
  trialOf(stranger, 'gives the name of a property of every object as user name', refusedPassword, {
    connect: user('__proto__', 'x'),
  }),
  trialOf(stranger, 'gives a user name of 30 KB', refusedPassword, {
    connect: user('x'.repeat(30_000), 'x'),
  }),
  trialOf(stranger, 'gives a password of 60 KB', refusedPassword, {
    connect: user(fleetUser.name, 'x'.repeat(60_000)),
  }),
  {
    who: stranger,
    where: 'mqtt',
    what: 'publishes in one piece with a CONNECT that is refused',
    expected: `${refusedPassword}, not delivered`,
    act(world, transport) {
      const payload = nextPayload()
      const atOnce = publishBytes({ topic: 'telemetry/v1/truck-2', payload: positionOf(world, payload) })
      return tryMqtt(world, transport, { connect: user(fleetUser.name, 'guess'), atOnce, payload })
    },
  },
  {
    who: 'a client of the fleet',
    where: 'mqtt',
    what: 'publishes in one piece with its CONNECT',
    expected: 'CONNACK 0, PUBACK, alive, delivered',
    act(world, transport) {
      const payload = nextPayload()
      const atOnce = publishBytes({ topic: 'telemetry/v1/truck-2', payload: positionOf(world, payload) })
      return tryMqtt(world, transport, { connect: withPassword(`eager-${payload}`), atOnce, payload })
    },
  },
]

export const connectAttempts: readonly Attempt[] = [...malformed, ...passwords]
