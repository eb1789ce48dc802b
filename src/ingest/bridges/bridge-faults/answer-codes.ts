// answer-codes.ts: what the codes of CONNACK, SUBACK and DISCONNECT of a broker mean (MQTT 3.1.1, 3.2.2.3 and
// 3.9.3; MQTT 5, 2.4), and what a person can do.

import { quote } from '../../../std/quote.ts'
import { plainCure, type Cure, type FaultPlace } from './cures.ts'

type CureOf = (place: FaultPlace) => Cure

const askOperator = 'Ask the operator of the broker; its log has the reason.'
const tryLater = 'Wait; the gateway tries again. If it stays, ask the operator of the broker.'
const olderVersion = 'Set `protocol: 3.1.1` of the bridge.'
const checkVersion = `${olderVersion} If that does not help, look into the log of the broker.`

/** The user is at fault, or there is none. */
function login(why: string, further = ''): CureOf {
  return ({ userName }) => ({
    why,
    act:
      userName === null
        ? 'The bridge has no user name. Set `username` and `password` of the bridge.'
        : `Check \`username\` and \`password\` of the bridge${further}.`,
  })
}

const mayNotConnect = login('The user may not connect.', ', and the access rules of the broker')
const wrongLogin = login('The broker refuses the user name or the password.')

const refusedClientId: CureOf = ({ clientId, isCheck }) => ({
  why: `The broker refuses the client id ${quote(clientId, 100)}.`,
  act: isCheck
    ? 'The check needs a client id of its own, to leave a running gateway alone. Allow ids with this beginning at ' +
      'the broker, or see in `status` whether the bridge itself connects.'
    : 'Set `client_id` of the bridge to one that the broker allows. Each broker allows 1 to 23 letters and digits.',
})

const otherServer: CureOf = ({ serverReference }) => ({
  why:
    serverReference === null
      ? 'The broker sends its clients to another server.'
      : `The broker sends its clients to another server: ${quote(serverReference, 200)}.`,
  act: 'Set `url` of the bridge to the address of that server. If it is not known, ask the operator of the broker.',
})

const filtersAct = 'Correct `topics` of the bridge, or give the user the right to subscribe at the broker.'
const noSharing = plainCure(
  'The broker has no shared subscriptions.',
  'Remove `share_group` and use one connection, or another broker.',
)
const noWildcards = plainCure(
  'The broker allows no wildcards in topic filters.',
  'Write `topics` of the bridge without "+" and "#", or use another broker.',
)

/** MQTT 5: one meaning in all packets. */
const common: Readonly<Record<number, CureOf>> = {
  128: plainCure('The broker gives no reason.', askOperator),
  129: plainCure('The broker cannot read a packet of the gateway.', checkVersion),
  130: plainCure('The broker says that the gateway breaks the protocol.', checkVersion),
  131: plainCure('The broker does not accept what is valid MQTT.', askOperator),
  132: plainCure('The broker does not know MQTT 5.', olderVersion),
  133: refusedClientId,
  134: wrongLogin,
  135: mayNotConnect,
  136: plainCure('The broker says that it is not available.', tryLater),
  137: plainCure('The broker is busy.', tryLater),
  138: plainCure('The client or its address is banned.', askOperator),
  139: plainCure('The broker shuts down.', 'Start the broker again; the bridge connects automatically.'),
  140: plainCure(
    'The broker wants another way to authenticate.',
    'Check `username`, `password` and `tls.cert` of the bridge.',
  ),
  141: plainCure(
    'The broker got no packet in time.',
    'Check the network. Raise `keepalive` where it is slow, and see whether this machine is overloaded.',
  ),
  142: plainCure(
    'Another client has connected with the same client id.',
    'Give each gateway a `client_id` of its own. See in the log of the broker who the other one is.',
  ),
  143: plainCure('The broker does not accept a topic filter.', filtersAct),
  144: plainCure('The broker does not accept a topic.', askOperator),
  145: plainCure('The broker says that a packet identifier is in use.', askOperator),
  146: plainCure('The broker does not know a packet identifier.', askOperator),
  147: plainCure('The broker counts more open messages than it allows.', 'Lower `window` of the bridge.'),
  148: plainCure('The broker does not accept a topic alias.', askOperator),
  149: plainCure('A packet of the gateway is too large for the broker.', askOperator),
  150: plainCure('Too many messages came in a short time.', 'Raise the limit for this user at the broker.'),
  151: plainCure(
    'A quota of the broker is used up.',
    'Raise the quota for this user at the broker: connections, sessions, subscriptions or stored messages.',
  ),
  152: plainCure('An administrator of the broker ended the connection.', askOperator),
  153: plainCure('The broker does not accept the format of a message.', askOperator),
  154: plainCure('The broker does not keep retained messages.', askOperator),
  155: plainCure(
    'The broker does not support this QoS.',
    'Set `qos: 0` of the bridge, or use another broker.',
  ),
  156: otherServer,
  157: otherServer,
  158: noSharing,
  159: plainCure('Too many connections came in a short time.', tryLater),
  160: plainCure(
    'The connection was longer than the broker allows.',
    'Nothing, if the bridge connects again. Otherwise raise the limit at the broker.',
  ),
  161: plainCure('The broker has no subscription identifiers.', askOperator),
  162: noWildcards,
}

/** MQTT 3.1.1, and where MQTT 5 means something else in CONNACK. */
const connackCures: Readonly<Record<number, CureOf>> = {
  1: plainCure(
    'The broker does not know this version of MQTT.',
    'Set `protocol: 3.1.1` of the bridge, or use a newer broker.',
  ),
  2: refusedClientId,
  3: plainCure('The broker says that it is not available.', tryLater),
  4: wrongLogin,
  5: mayNotConnect,
}

const disconnectCures: Readonly<Record<number, CureOf>> = {
  0: plainCure('The broker ended the connection without a reason.', askOperator),
  135: login('The user may not stay connected.', ', and the access rules of the broker'),
}

const subackCures: Readonly<Record<number, CureOf>> = {
  128: plainCure(
    'The user may not read these topics, or the broker does not allow such a filter.',
    filtersAct,
  ),
  135: plainCure(
    'The user may not read these topics.',
    'Give the user the right to subscribe at the broker.',
  ),
  151: plainCure(
    'A quota of the broker is used up.',
    'Raise the number of subscriptions of this user at the broker, or write fewer `topics`.',
  ),
}

/** CONNACK. */
export function connackCure(code: number, place: FaultPlace): Cure {
  return cureIn(connackCures, code, place) ?? unknown('The broker refuses the connection', code)
}

export function disconnectCure(code: number, place: FaultPlace): Cure {
  return cureIn(disconnectCures, code, place) ?? unknown('The broker ended the connection', code)
}

export function subackCure(code: number, place: FaultPlace): Cure {
  return cureIn(subackCures, code, place) ?? unknown('The broker refuses the subscription', code)
}

export const shareCure = noSharing
export const wildcardCure = noWildcards

function cureIn(own: Readonly<Record<number, CureOf>>, code: number, place: FaultPlace): Cure | null {
  return (own[code] ?? common[code])?.(place) ?? null
}

function unknown(what: string, code: number): Cure {
  return { why: `${what} with code ${code}.`, act: askOperator }
}
