// device.ts: an honest device over real sockets: MQTT 3.1.1 or 5, QoS 1 or 2, TCP or WebSocket, with TLS or without.
//
// Its messages have the numbers 1, 2, 3, and its plan says what each of them contains. It keeps a message until it has
// the acknowledgement, and sends what it keeps again, in order and with DUP, over its next connection. With MQTT 5 it
// uses what the gateway allows: the receive maximum, and a topic alias after the first message of a connection.
//
// What no gateway may answer is in `wrong`: acknowledgements that are not in the order of their messages or refuse one,
// a session that is gone or was never there, DISCONNECT with a reason that only a faulty client deserves.

import { setTimeout as pauseMs } from 'node:timers/promises'
import { connectPacket3, publishPacket3, readServerPacket3 } from '../mqtt3-packets.ts'
import {
  cleanStart,
  connectPacket,
  property,
  publishPacket,
  pubrelPacket,
  uint16,
  uint32,
  type Part,
} from '../mqtt5-packets.ts'
import { readServerPacket, type ServerPacket } from '../mqtt5-reader.ts'
import { openRawDevice, type RawDevice } from '../raw-device.ts'

/** `properties`: of MQTT 5. */
export type Content = { topic: string; payload: string | Buffer; properties?: readonly Part[] }

export type DevicePlan = {
  name: string
  /** The name where it is left out. */
  clientId?: string
  message(n: number): Content
  version?: 4 | 5
  qos?: 1 | 2
  /** Messages on the way, at most. */
  window?: number
  /** Clean Session, or Clean Start. Default true. */
  clean?: boolean
  /** Of the session of MQTT 5; 0: it ends with its connection. */
  expiryS?: number
  /** Between two messages, at least. */
  everyMs?: number
  /** It connects again where an acknowledgement takes longer. */
  answerMsMax?: number
  /** Default: they count up. */
  packetIdOf?: (n: number) => number
  login?: { userName: string; password: string }
  /** PEM of the authority of the gateway's certificate. */
  ca?: string
}

/** What a fleet has for its devices. */
export type Feed = {
  /** Whether the device may publish one more message, which it then does. */
  take(): boolean
  /** Resolves when `take` may say true again. */
  fed(): Promise<void>
  acked(device: Device, n: number, tookMs: number): void
}

type Open = { n: number; sentMs: number; isReleased: boolean }

const openMsMax = 10_000
const reconnectMs = 100
const noAnswerLookMs = 250
/** CONNACK, while the store is being reopened. */
const notNow: ReadonlySet<number> = new Set([3, 0x88])
/** DISCONNECT where the gateway stops, and where its disk is full: nothing else is the fault of no device. */
const expectedEnds: ReadonlySet<number> = new Set([0x8b, 0x83])

export class Device {
  readonly plan: DevicePlan
  readonly wrong: string[] = []
  published = 0
  acked = 0
  resent = 0
  /** Ends of connections that the gateway had accepted. */
  ended = 0
  readonly #feed: Feed
  /** By packet identifier, in the order of their messages. A released one has PUBREC and no PUBCOMP. */
  readonly #open = new Map<number, Open>()
  /** Whether CONNACK must name a session; null where the last CONNACK may have been lost. */
  #hasSession: boolean | null = false
  #link: RawDevice | null = null
  #aliases = new Map<string, number>()
  #aliasMax = 0

  constructor(plan: DevicePlan, feed: Feed) {
    this.plan = plan
    this.#feed = feed
  }

  /** Connects and publishes, over lost connections, as long as `goesOn` says so. */
  async serve(urlOf: (turn: number) => string, goesOn: () => boolean): Promise<void> {
    const { ca } = this.plan
    const read = this.#is5 ? readServerPacket : readServerPacket3
    for (let turn = 0; goesOn(); turn += 1) {
      const to = { url: urlOf(turn), ...(ca !== undefined && { ca }) }
      const opening = openRawDevice(to, read)
      const link = await Promise.race([opening, pauseMs(openMsMax, null, { ref: false })]).catch(() => null)
      // One that is too late is not used.
      if (link === null) void opening.then((late) => late.destroy()).catch(() => undefined)
      if (link !== null) await this.#use(link)
      // The sockets close shortly before the exit of the process is reported.
      await pauseMs(reconnectMs)
    }
  }

  disconnect(): void {
    this.#link?.destroy()
  }

  /** Numbers that are published and not acknowledged. */
  unacked(): Set<number> {
    return new Set([...this.#open.values()].filter(({ isReleased }) => !isReleased).map(({ n }) => n))
  }

  get #is5(): boolean {
    return this.plan.version === 5
  }

  async #use(link: RawDevice): Promise<void> {
    this.#link = link
    const { answerMsMax = Infinity } = this.plan
    const isLate = ({ sentMs }: Open) => performance.now() - sentMs > answerMsMax
    const watch = setInterval(() => {
      if ([...this.#open.values()].some(isLate)) link.destroy()
    }, noAnswerLookMs)
    try {
      const window = await this.#connect(link)
      if (window === null) return
      await this.#talk(link, window).finally(() => (this.ended += 1))
    } catch (error) {
      if (!link.closed) throw error
      this.#noteMalformed(link)
    } finally {
      clearInterval(watch)
      link.destroy()
      this.#link = null
    }
  }

  #noteMalformed(link: RawDevice): void {
    try {
      void link.received
    } catch (error) {
      this.#isWrong(String(error))
    }
  }

  #isWrong(what: string): void {
    this.wrong.push(`${this.plan.name} ${what}`)
  }

  /** Messages on the way at most; null where the gateway does not take the device now. */
  async #connect(link: RawDevice): Promise<number | null> {
    const { name, clientId = name, clean = true, expiryS = 0, login, window = 1 } = this.plan
    const isKept = this.#is5 ? expiryS > 0 : !clean
    const expected = clean ? false : this.#hasSession
    // It may be stored although its CONNACK is lost.
    if (isKept && this.#hasSession === false) this.#hasSession = null
    const flags = (clean ? cleanStart : 0) | (this.#is5 && login !== undefined ? 0xc0 : 0)
    const properties = [property.sessionExpiry, uint32(expiryS), property.receiveMaximum, uint16(10)]
    const fields = { clientId, flags, ...login }
    link.send(this.#is5 ? connectPacket({ ...fields, properties }) : connectPacket3(fields))
    const connack = await link.next('connack')
    const { code, sessionPresent } = connack
    if (code !== 0) {
      if (!notNow.has(code)) this.#isWrong(`got CONNACK ${code}`)
      return null
    }
    if (expected !== null && expected !== sessionPresent)
      this.#isWrong(`got CONNACK with session present ${sessionPresent}`)
    this.#hasSession = isKept
    if (!sessionPresent) for (const [id, { isReleased }] of this.#open) if (isReleased) this.#open.delete(id)
    this.#aliases = new Map()
    this.#aliasMax = Number(connack.properties.get(property.topicAliasMaximum) ?? 0)
    return Math.min(window, Number(connack.properties.get(property.receiveMaximum) ?? Infinity))
  }

  async #talk(link: RawDevice, window: number): Promise<void> {
    const { everyMs = 0, packetIdOf = (n: number) => ((n - 1) % 65_535) + 1 } = this.plan
    /** Packet identifiers, in the order of their PUBLISH. */
    const awaited: number[] = []
    for (const [id, open] of this.#open) {
      if (open.isReleased) link.send(pubrelPacket(id))
      else this.#publish(link, { id, open, dup: true, awaited })
    }
    this.resent += awaited.length
    let looked = link.received.length
    let nextAtMs = performance.now()
    for (;;) {
      let isFed = true
      while (isFed && this.#open.size < window && performance.now() >= nextAtMs) {
        isFed = this.#feed.take()
        if (!isFed) break
        const n = (this.published += 1)
        const open = { n, sentMs: 0, isReleased: false }
        this.#open.set(packetIdOf(n), open)
        this.#publish(link, { id: packetIdOf(n), open, dup: false, awaited })
        nextAtMs = Math.max(nextAtMs + everyMs, performance.now() - everyMs)
      }
      const isDue = isFed && this.#open.size < window
      await Promise.race([
        link.until(() => link.received.length > looked),
        ...(isFed ? [] : [this.#feed.fed()]),
        ...(isDue ? [pauseMs(Math.max(0, nextAtMs - performance.now()))] : []),
      ])
      for (; looked < link.received.length; looked += 1) this.#take(link, link.received[looked]!, awaited)
    }
  }

  #publish(link: RawDevice, { id, open, dup, awaited }: Publish): void {
    const { qos = 1, message } = this.plan
    const { topic, payload, properties = [] } = message(open.n)
    open.sentMs = performance.now()
    awaited.push(id)
    const fields = { topic, payload, qos, messageId: id, dup }
    if (!this.#is5) {
      link.send(publishPacket3(fields))
      return
    }
    const known = this.#aliases.get(topic)
    if (known === undefined && this.#aliases.size < this.#aliasMax)
      this.#aliases.set(topic, this.#aliases.size + 1)
    const alias = this.#aliases.get(topic)
    const section = alias === undefined ? properties : [property.topicAlias, uint16(alias), ...properties]
    link.send(publishPacket({ ...fields, topic: known === undefined ? topic : '', properties: section }))
  }

  #take(link: RawDevice, { type, code, messageId }: ServerPacket, awaited: number[]): void {
    if (type === 'disconnect' && !expectedEnds.has(code)) this.#isWrong(`got DISCONNECT ${code}`)
    if (type === 'pubcomp') this.#open.delete(messageId)
    if (type !== 'puback' && type !== 'pubrec') return
    const place = awaited.indexOf(messageId)
    const open = this.#open.get(messageId)
    if (code !== 0) this.#isWrong(`got ${type} ${code} for message ${messageId}`)
    if (place !== 0) this.#isWrong(`got ${type} of ${messageId} out of the order of its messages`)
    if (place < 0 || open === undefined) return
    awaited.splice(place, 1)
    this.acked += 1
    if (type === 'puback') this.#open.delete(messageId)
    else {
      open.isReleased = true
      link.send(pubrelPacket(messageId))
    }
    this.#feed.acked(this, open.n, performance.now() - open.sentMs)
  }
}

type Publish = { id: number; open: Open; dup: boolean; awaited: number[] }
