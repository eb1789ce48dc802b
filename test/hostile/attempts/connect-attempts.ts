// connect-attempts.ts: attempts with CONNECT: malformed ones, other protocols, wrong passwords, borrowed client ids.

import { publishBytes } from '../../support/mqtt-device.ts'
import { fleetUser, otherUser } from '../hostile-world.ts'
import { nextPayload, positionOf, trialOf, tryMqtt, withPassword, type Attempt } from './attempt.ts'

const stranger = 'a stranger'
const bridge = 'a device with an old client'

/** CONNECT of MQTT 3.1.1 with these bytes in places that no client library writes. */
function rawConnect(options: {
  protocol?: string
  level?: number
  flags?: number
  fields?: readonly Buffer[]
}): Buffer {
  const { protocol = 'MQTT', level = 4, flags = 2, fields = [field('raw')] } = options
  const body = Buffer.concat([field(protocol), Buffer.from([level, flags, 0, 0]), ...fields])
  return Buffer.concat([Buffer.from([0x10, body.length]), body])
}

function field(content: string | Buffer): Buffer {
  const bytes = Buffer.from(content)
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 0xff]), bytes])
}

const user = (username: string, password: string | null) => ({
  username,
  ...(password === null ? {} : { password: Buffer.from(password) }),
})

const malformed: readonly Attempt[] = [
  trialOf(stranger, 'sends a request of HTTP', 'closed (not_connect)', {
    connect: Buffer.from('GET / HTTP/1.1\r\n\r\n'),
  }),
  trialOf(stranger, 'publishes before CONNECT', 'closed (not_connect)', {
    connect: publishBytes({ topic: 'telemetry/v1/truck-1', payload: '{}' }),
  }),
  trialOf(
    stranger,
    'begins TLS on the plain port',
    'closed (tls_on_plain_port)',
    { connect: Buffer.from([0x16, 3, 1, 0, 5, 1, 0, 0, 1, 3]) },
    ['tcp'],
  ),
  trialOf(stranger, 'sends CONNECT without TLS to the TLS port', 'closed (not_tls)', { speaks: 'tcp' }, [
    'tls',
  ]),
  trialOf(stranger, 'announces a CONNECT of 200 MB', 'closed (connect_too_large)', {
    connect: Buffer.from([0x10, 0x80, 0x84, 0xaf, 0x5f, 0, 4]),
  }),
  trialOf(stranger, 'sends a length without an end', 'closed (malformed_length)', {
    connect: Buffer.from([0x10, 0x80, 0x80, 0x80, 0x80, 1]),
  }),
  trialOf(stranger, 'names another protocol', 'closed (protocol_error)', {
    connect: rawConnect({ protocol: 'HTTP' }),
  }),
  trialOf(stranger, 'sets the reserved flag', 'closed (protocol_error)', {
    connect: rawConnect({ flags: 3 }),
  }),
  trialOf(stranger, 'sends a CONNECT that ends too early', 'closed (protocol_error)', {
    connect: Buffer.from([0x10, 2, 0, 4]),
  }),
  trialOf(stranger, 'has a client id with a null character', 'closed (bad_client_id)', {
    connect: rawConnect({ fields: [field('a\0b')] }),
  }),
  trialOf(stranger, 'has a client id that is not UTF-8', 'closed (bad_client_id)', {
    connect: rawConnect({ fields: [field(Buffer.from([0x61, 0xc3, 0x28]))] }),
  }),
  trialOf(stranger, 'has a user name with a null character', 'closed (bad_user_name)', {
    connect: rawConnect({ flags: 0x82, fields: [field('raw'), field('fle\0et')] }),
  }),
  trialOf(stranger, 'gives a password without a user name', 'closed (password_without_user)', {
    connect: rawConnect({ flags: 0x42, fields: [field('raw'), field('secret')] }),
  }),
  trialOf(stranger, 'has a will with QoS 3', 'closed (bad_will_qos)', {
    connect: rawConnect({ flags: 0x1e, fields: [field('raw'), field('a'), field('x')] }),
  }),
  trialOf(stranger, 'has a will for a topic with #', 'closed (bad_will_topic)', {
    connect: { will: { topic: 'telemetry/#', payload: Buffer.from('x'), qos: 0, retain: false } },
  }),
  trialOf(stranger, 'has a client id of 300 bytes', 'CONNACK 2, closed (client_id_too_long)', {
    clientId: 'x'.repeat(300),
    connect: {},
  }),
  trialOf(stranger, 'asks for a stored session without a client id', 'CONNACK 2, closed (no_client_id)', {
    connect: rawConnect({ flags: 0, fields: [field('')] }),
  }),
  trialOf(stranger, 'speaks a level that does not exist', 'CONNACK 1, closed (unsupported_level)', {
    connect: rawConnect({ level: 9 }),
  }),
  trialOf(stranger, 'sends CONNECT twice', 'CONNACK 0, closed (protocol_error)', {
    connect: {},
    sends: rawConnect({}),
  }),
  trialOf(bridge, 'speaks level 0x84, as bridges of Mosquitto do', 'CONNACK 0, alive', {
    connect: rawConnect({ level: 0x84 }),
  }),
  trialOf(bridge, 'speaks MQTT 3.1', 'CONNACK 0, alive', {
    connect: rawConnect({ protocol: 'MQIsdp', level: 3 }),
  }),
  trialOf(bridge, 'has no client id and a clean session', 'CONNACK 0, alive', {
    connect: rawConnect({ fields: [field('')] }),
  }),
]

const refusedPassword = 'CONNACK 4, closed (bad_credentials)'

const passwords: readonly Attempt[] = [
  trialOf('a client of the fleet', 'gives its password', 'CONNACK 0, alive', {}),
  trialOf(stranger, 'gives a wrong password', refusedPassword, { connect: user(fleetUser.name, 'guess') }),
  trialOf(stranger, 'gives the password of another user', refusedPassword, {
    connect: user(fleetUser.name, otherUser.password),
  }),
  trialOf(stranger, 'gives an empty password', refusedPassword, { connect: user(fleetUser.name, '') }),
  trialOf(stranger, 'gives a user name without a password', refusedPassword, {
    connect: user(fleetUser.name, null),
  }),
  trialOf(stranger, 'gives the password with one more character', refusedPassword, {
    connect: user(fleetUser.name, `${fleetUser.password} `),
  }),
  trialOf(stranger, 'gives the user name in capitals', refusedPassword, {
    connect: user(fleetUser.name.toUpperCase(), fleetUser.password),
  }),
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
