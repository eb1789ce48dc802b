// aedes-internals.ts: what the gateway uses of aedes 1.2 beyond its documented interface, and the store that
// aedes asks for. No other file touches private fields of aedes or depends on the text of its errors.
// The tests of the statements of MQTT (test/ingest/mqtt) and device-stories.test.ts fail when an upgrade
// changes one of them; read lib/client.js and lib/handlers of aedes then.

import { isUtf8 } from 'node:buffer'
import type { EventEmitter } from 'node:events'
import { Readable } from 'node:stream'
import { Aedes, type Client } from 'aedes'
import { writeToStream } from 'mqtt-packet'
import { clientDrops, type ClientDropReason } from './client-faults.ts'

// Otherwise it keeps a buffer for each of 65,536 numbers, 10 MB of heap, for the few packets that aedes
// writes.
writeToStream.cacheNumbers = false

export type ConnectPacket = Parameters<Aedes['preConnect']>[1]
/** A packet after CONNECT, as far as the gateway reads it. `length`: its remaining length. */
export type ParsedPacket = { length: number } & (
  | { cmd: 'subscribe'; messageId: number; subscriptions: readonly { topic: string; qos: number }[] }
  | { cmd: 'unsubscribe'; messageId: number; unsubscriptions: readonly string[] }
  | { cmd: 'pubrel'; messageId: number }
  | { cmd: 'pingreq' }
  | { cmd: 'disconnect' }
  | { cmd: 'connect' | 'publish' | 'puback' | 'pubrec' | 'pubcomp' }
)
export type PublishPacket = Parameters<Aedes['authorizePublish']>[1]
export type Done = (error?: Error | null) => void

type ClientInternals = Client & {
  /** Packets in flight; aedes reads the socket only at 0. */
  _parsingBatch: number
  _disconnected: boolean
  version: number | null
  _parser: Parser
  /** Reads the socket when no packet is in flight. Listens to `readable`. */
  _nextBatch: () => void
  /** Ends what `stream.finished` listens to. */
  _eos: () => void
  subscriptions: object
  duplicates: object
  _inboundInflight: ReadonlySet<number>
}

/** The parser of mqtt-packet. A text that it cannot read is null, and the packet then an error. */
type Parser = EventEmitter & {
  packet: { cmd: string; protocolId?: string; clientId?: string; will?: { topic?: string } }
  _list: UnreadBytes
  _pos: number
  _parseString(): string | null
  _emitError(error: Error): void
}

/** Those of the package `bl`. That of a stream names the plain list. */
type UnreadBytes = {
  slice(start: number, end: number): Buffer
  readonly constructor: { readonly BufferList?: new () => UnreadBytes }
}

/** An aedes without subscribers: no retained store, no offline queue, no emitter, no $SYS messages. */
export class QuietAedes extends Aedes {
  /** By the name of the client (`clientNameOf`). The types of aedes lack it. */
  declare readonly clients: Readonly<Record<string, Client>>

  // aedes calls it with or without the sending client before the callback; its types know one form only.
  override publish(_packet: PublishPacket, clientOrDone: unknown, last?: Done): void {
    const done = typeof clientOrDone === 'function' ? (clientOrDone as Done) : last
    done?.(null)
  }
}

/** Has aedes read the socket at each `readable` event, however many packets it holds in flight. */
export function readAtEachEvent(client: Client): void {
  client.conn.off('readable', (client as ClientInternals)._nextBatch)
  client.conn.on('readable', readNow)
}

/** One function for all sockets. aedes notes the client at its connection. */
function readNow(this: { client: ClientInternals }): void {
  this.client._parsingBatch = 0
  this.client._nextBatch()
}

/** MQTT 3.1.1, and not 3.1. */
export function isVersion311(client: Client): boolean {
  return (client as ClientInternals).version === 4
}

/**
 * Has aedes and its parser take the CONNECT of a client of MQTT 5 for one of 3.1.1. They never see another
 * packet of it.
 */
export function asVersion311(packet: ConnectPacket): void {
  packet.protocolVersion = 4
}

const connackBytes = 4
const connackHead = 0x20

/** Has `answer` take the place of the CONNACK that aedes is about to write. aedes writes it in parts. */
export function replaceConnack({ conn }: Client, answer: () => Buffer): void {
  const stream = conn as { write: (bytes: Buffer) => boolean }
  const isOwn = Object.hasOwn(stream, 'write')
  const write = stream.write
  let taken = 0
  stream.write = (bytes) => {
    if (taken === 0 && bytes[0] !== connackHead) return write.call(stream, bytes)
    taken += bytes.length
    if (taken < connackBytes) return true
    if (isOwn) stream.write = write
    else delete (stream as Partial<typeof stream>).write
    return stream.write(answer())
  }
}

/** The client has ended its connection rightly: its will is not taken. */
export function noteDisconnect(client: Client): void {
  const internals = client as ClientInternals
  internals._disconnected = true
}

/** The open connection of the client that has this name. */
export function connectedClient(aedes: QuietAedes, clientName: string): Client | undefined {
  return aedes.clients[clientName]
}

/** The client has sent DISCONNECT. */
export function hasDisconnected(client: Client): boolean {
  return (client as ClientInternals)._disconnected
}

/**
 * Leaves the end of a connection to the gate, which calls `client.close()` when the socket has closed. aedes
 * destroys a connection whose client has closed its side, with all that is unsent. What it listens to takes
 * 1.5 KB of each connection.
 */
export function leaveEndToGate(client: Client): void {
  const internals = client as ClientInternals
  const { conn } = client
  internals._eos()
  internals._eos = nothing
  for (const listener of conn.listeners('end')) {
    if (listener.name === 'bound close') conn.off('end', listener as () => void)
  }
  // Added again, they are in a list without spare room. One that had three listeners has room for sixteen.
  const listeners = conn.rawListeners('error') as (() => void)[]
  conn.removeAllListeners('error')
  for (const listener of listeners) conn.on('error', listener)
}

function nothing(): void {}

/** Frozen: aedes throws where it would note something in it. */
const none = Object.freeze(Object.create(null) as object)
/** Stays empty: the code of aedes for QoS 2, which adds to it, is not reached (createAedesPersistence). */
const noNumbers: ReadonlySet<number> = new Set()

/**
 * Gives all clients the same empty tables. aedes makes three for each client and fills none: it sends the
 * clients nothing and does not see their messages.
 */
export function shareEmptyTables(client: Client): void {
  const internals = client as ClientInternals
  internals.subscriptions = none
  internals.duplicates = none
  internals._inboundInflight = noNumbers
}

/**
 * Returns what has each packet of a client behind CONNECT offered to `take` first; aedes does not see what it
 * takes. One function for all clients: aedes notes the client at its parser.
 */
export function createPacketOffer(
  take: (client: Client, packet: ParsedPacket) => boolean,
): (client: Client) => void {
  let enqueue: ((packet: ParsedPacket) => void) | undefined
  function offer(this: Parser & { client: Client }, packet: ParsedPacket): void {
    if (!take(this.client, packet)) enqueue?.call(this, packet)
  }
  return (client) => {
    const { _parser: parser } = client as ClientInternals
    enqueue = parser.listeners('packet')[0] as typeof enqueue
    parser.removeAllListeners('packet')
    parser.on('packet', offer)
  }
}

/**
 * Has the parser refuse texts that are not well-formed UTF-8 [MQTT-1.5.3-1], which it repairs by itself, and
 * keep the bytes that it has not read in a plain list: a duplex stream for them, which is never used as one,
 * takes 1 KB of each connection.
 */
export function prepareParser(client: Client): void {
  const { _parser: parser } = client as ClientInternals
  parser._parseString = parseWellFormed
  const { BufferList } = parser._list.constructor
  if (BufferList !== undefined) parser._list = new BufferList()
}

function parseWellFormed(this: Parser): string | null {
  const start = this._pos + 2
  const text = (Object.getPrototypeOf(this) as Parser)._parseString.call(this)
  // Malformed bytes become U+FFFD, which may also be what the client sent.
  if (text === null || !text.includes('\ufffd')) return text
  if (isUtf8(this._list.slice(start, this._pos))) return text
  this._emitError(new Error(`${textNameOf(this.packet)} is not well-formed UTF-8`))
  return null
}

/** What the parser reads: the texts of CONNECT come in the order of MQTT 3.1.3. */
function textNameOf({ cmd, protocolId, clientId, will }: Parser['packet']): string {
  if (cmd === 'publish') return 'topic'
  if (cmd !== 'connect') return 'topic filter'
  if (protocolId === undefined) return 'protocol name'
  if (clientId === undefined) return 'client id'
  return will !== undefined && will.topic === undefined ? 'will topic' : 'user name'
}

type Fault = { reason: ClientDropReason; detail: string }

const faultsByText: Readonly<Record<string, Fault>> = {
  'connect did not arrive in time': { reason: 'connect_timeout', detail: clientDrops.connect_timeout },
  'empty topic not allowed in PUBLISH': badTopic('is empty [MQTT-4.7.3-1]'),
  '# is not allowed in PUBLISH': badTopic('contains a wildcard [MQTT-3.3.2-2]'),
  '+ is not allowed in PUBLISH': badTopic('contains a wildcard [MQTT-3.3.2-2]'),
  'topic has too many levels': badTopic('has more levels than max_topic_levels'),
}

function badTopic(problem: string): Fault {
  return { reason: 'bad_topic', detail: `It published to a topic that ${problem}.` }
}

/** Errors of parseWellFormed. The parser emits a second error after it; by then the client is dropped. */
const reasonsOfTexts: Readonly<Record<string, ClientDropReason>> = {
  topic: 'bad_topic',
  'topic filter': 'bad_topic_filter',
  'client id': 'bad_client_id',
  'will topic': 'bad_will_topic',
  'user name': 'bad_user_name',
}
const malformedText = /^(.+) is not well-formed UTF-8$/

/** The protocol fault that aedes or its parser found; null for an error of the network. */
export function protocolFaultOf(error: Error): Fault | null {
  if ('code' in error || 'errorCode' in error) return null
  // aedes had an answer for a client that was gone.
  if (error.message === 'connection closed') return null
  const fault = faultsByText[error.message]
  if (fault !== undefined) return fault
  const textName = malformedText.exec(error.message)?.[1]
  if (textName !== undefined)
    return {
      reason: reasonsOfTexts[textName] ?? 'protocol_error',
      detail: `A ${textName} that it sent is not well-formed UTF-8 [MQTT-1.5.3-1].`,
    }
  return { reason: 'protocol_error', detail: `It broke the MQTT protocol: ${error.message}.` }
}

type PersistenceDeps = {
  /** Whether the CONNECT that is being answered resumes a stored session. Read within `authenticate`. */
  isSessionPresent: () => boolean
}

/** aedes answers CONNACK with "session present" where it finds subscriptions; this one is refused. */
const markOfPresence = { topic: 'session', qos: 0 }

/**
 * The part of aedes-persistence that aedes calls without subscriptions. Sessions are opened in
 * `authenticate`, messages are stored by the intake, and PUBREL is taken before aedes sees it. Wills,
 * retained messages and subscriptions are not stored: a will is taken when its connection breaks, and nothing
 * is ever sent to a client.
 */
export function createAedesPersistence({ isSessionPresent }: PersistenceDeps) {
  return {
    async setup() {},
    async subscriptionsByClient() {
      return isSessionPresent() ? [markOfPresence] : []
    },
    async cleanSubscriptions() {},
    async removeSubscriptions() {},
    async putWill() {},
    async delWill() {},
    streamWill: () => Readable.from([]),
    outgoingStream: () => Readable.from([]),
    /** A reply to a message that was never sent. */
    async outgoingClearMessageId() {},
    async outgoingUpdate() {},
    async cleanIncoming() {},
  }
}
