// bridges.ts: takes messages from other MQTT brokers, as a client that subscribes. The entry file of the
// folder.
//
// Promises
//   PUBACK is sent after the fsync of the group that holds the message, in the order of the messages of a
//   connection. What was not acknowledged when a connection ends is delivered again by the broker, if it
//   keeps the session: `session: keep` (default) and a `session_expiry` that is longer than the outage. A
//   broker that is not reachable, refuses, or is silent stops nothing else, and is a condition.
//
// How
//   bridge-link.ts         one connection: connects with back-off, subscribes, checks what was granted
//   bridge-attempt.ts      one attempt of it: socket, client object of mqtt.js, leaving and ending
//   publish-stream.ts      takes PUBLISH out of the stream before mqtt.js, and writes PUBACK, once per commit
//   publish-frames.ts      packets, and PUBLISH; publish-properties.ts: user properties of MQTT 5
//   bridge-socket.ts       TCP, TLS, WebSocket
//   session-risks/         what the config or the broker would lose, as warnings (window-watch.ts,
//                          short-connections.ts)
//   bridge-config.ts       `ingest.bridges[]`; bridge-fields.ts: what other kinds of bridges have, too
//   bridge-check.ts        tries a bridge for `check --connect`
//   bridge-faults/         each fault in words: the cause, and what a person can do
//
// mqtt.js speaks the protocol; it sees no PUBLISH. A client object lives for one connection: its own
// reconnect has no back-off and stops after a refusal.
//
//   waiting --(back-off)--> connecting --(CONNACK, SUBACK)--> connected --(lost)--> waiting
//                                                               |  ^
//                              (no room for seconds: DISCONNECT) v  | (room again)
//                                                              paused
//
// What can go wrong, and what then happens
//   the spool is full, the disk low   reading stops at once. After 2 s the bridge disconnects; the broker
//                                     keeps the session and queues, as far as its own limits allow (`paused`)
//   a write fails                     the connection is closed without an acknowledgement; the broker
//                                     delivers again
//   the network breaks                mqtt.js notices by keepalive; the same with back-off
//   the broker refuses the client or  a condition with the reason; the next try with back-off, at most after
//   a subscription                    `reconnect_max`
//   a message is larger than          it is skipped, acknowledged, and a dead letter without its bytes, so
//   `max_packet_bytes`                that those behind it come; the condition names topic and size
//   a topic is not valid in MQTT      the message is a dead letter, for the same reason
//   two gateways share a client id    each connection ends the other: the back-off grows, the condition says
//                                     so
//   a gateway is killed               its session keeps what it had not acknowledged, and what arrives until
//                                     it returns. In a shared subscription, too: brokers keep giving its
//                                     share to it
//
// Second effects: a message that was stored and whose acknowledgement was lost is delivered again, perhaps to
// another member. With a device time its payload has the same payloadId: the dedup window collapses it in one
// gateway, the service counts it between two.

import type { Clock } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import type { MessageFeed, MessageSource, Partition } from '../message-sources/message-sources.ts'
import { urlText } from './bridge-address.ts'
import { createBridgeLink, type BridgeLink } from './bridge-link.ts'
import { createSessionRisks } from './session-risks/session-risks.ts'
import type { BridgeOptions } from './types.ts'

export { abilitiesOf, checkBridge, type BridgeFinding } from './bridge-check.ts'
export type { BridgeOptions } from './types.ts'

export type BridgeDeps = { clock: Clock; emit: Emit; random: () => number }

/** MQTT 3.1.1 has no number for it; the identifiers end there. */
const identifiers = 65_535

/** What may change while it runs: the next connection uses it. */
export type BridgeCredentials = Pick<BridgeOptions, 'userName' | 'password' | 'tls'>

export type MqttBridge = MessageSource & { renew(credentials: BridgeCredentials): void }

export function createMqttBridge(deps: BridgeDeps, options: BridgeOptions): MqttBridge {
  const links: BridgeLink[] = []
  const credentials: BridgeCredentials = { ...options }
  /** The link of each partition. */
  const linkOf = new WeakMap<Partition, BridgeLink>()
  const risks = createSessionRisks(deps, options)
  let wanted = 0

  function start(feed: MessageFeed): void {
    const linkFeed = (link: () => BridgeLink): MessageFeed => ({
      ...feed,
      assign(label, sender) {
        const partition = feed.assign(label, sender)
        linkOf.set(partition, link())
        return partition
      },
    })
    risks.configured(options.clientIds[0] ?? '')
    for (const clientId of options.clientIds) {
      const link: BridgeLink = createBridgeLink(
        { ...deps, risks, credentials, feed: linkFeed(() => link) },
        { ...options, clientId },
      )
      links.push(link)
      link.want(wanted)
      link.start()
    }
  }

  return {
    name: options.name,
    kind: 'mqtt',
    traits: {
      ackKind: 'each',
      partitioned: false,
      windowMax: Math.min(options.window, identifiers),
      holdMs: null,
      redelivers: 'on_reconnect',
    },
    start,
    renew({ userName, password, tls }) {
      Object.assign(credentials, { userName, password, tls })
    },
    want(messages) {
      wanted = messages
      for (const link of links) link.want(messages)
    },
    acknowledge: (partition, position) => linkOf.get(partition)?.acknowledge(position),
    flush: (partition) => linkOf.get(partition)?.flush(),
    giveBack: (partition) => linkOf.get(partition)?.giveBack(),
    reconnect(clientId) {
      for (const link of links) if (clientId === null || link.view().clientId === clientId) link.reconnect()
    },
    publish: (topic, bytes) => links.some((link) => link.publish(topic, bytes)),
    async release() {
      await Promise.all(links.map((link) => link.release()))
    },
    async close() {
      risks.found.close()
      await Promise.all(links.map((link) => link.close()))
    },
    states: () => risks.found.states(),
    view: () => ({
      url: urlText(options.url),
      links: links.map((link) => link.view()),
      partitions: [],
      lag: null,
      lost: null,
      retainedIgnored: links.reduce((sum, link) => sum + link.retainedIgnored(), 0),
    }),
  }
}
