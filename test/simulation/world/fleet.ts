// fleet.ts: the devices of the simulated world: bare MQTT clients (3.1.1 and 5), as strict as the standard lets them be.
// A device keeps a message until the gateway has acknowledged it, over reconnects and restarts of the gateway.
//
// What they saw is what the oracle knows: sent, acknowledged, in which order. What no gateway may send is in `wrong`.
//
//   acknowledgements   on each connection exactly one for each PUBLISH and PUBREL, of its type, in the order of those
//   session present    as the last CONNACK promised, also after a kill or a power cut
//   receive maximum    the window of a client of MQTT 5 is not larger

import { connectPacket, pingPacket, property, publishPacket } from '../../support/mqtt5-packets.ts'
import { disconnectPacket, pubrelPacket, uint32 } from '../../support/mqtt5-packets.ts'
import { readServerPacket } from '../../support/mqtt5-reader.ts'
import { connectPacket3, publishPacket3, readServerPacket3 } from '../../support/mqtt3-packets.ts'
import type { ServerPacket } from '../../support/mqtt5-reader.ts'
import type { Random } from '../../support/random.ts'
import type { Kernel } from '../machine/kernel.ts'
import type { Network, WorldEnd } from '../machine/network.ts'
import { isUntimed, poisons, type ContentKind, type ExpectedRecord, type Poison } from './contents.ts'
import { createMessageMaker } from './message-maker.ts'

export type DevicePlan = {
  id: string
  provider: string
  kind: ContentKind
  version: 4 | 5
  /** Of each message one of these. */
  qos: readonly (0 | 1 | 2)[]
  /** Messages that it sends before it waits for an acknowledgement. */
  window: number
  everyMs: number
  /** Messages at once, each time. */
  burst: number
  /** Share of messages that are not what the mapping reads. */
  poison: number
  poisons: readonly Poison[]
  /** One in so many of its first messages has an odometer that falls; 0: none. */
  fallsEvery: number
  /** Of `parts`: between the times of two values of a record. */
  partMs: number
  /** Its payloads are refused by the service as invalid. */
  isDoomed: boolean
  /** Of its connections, the share with a clean session. */
  cleanShare: number
  /** MQTT 5: it asks for one of these at each CONNECT, and at a DISCONNECT. */
  expiriesS: readonly number[]
  /**
   * Packet identifiers: it counts on, takes the lowest free one, or counts from 1 on each connection.
   */
  identifiers: 'counting' | 'lowest' | 'fromOne'
  /** Its clock minus the true time. */
  clockMs: number
  /** It connects as soon as it can. */
  isEager: boolean
}

export type SentMessage = {
  device: DevicePlan
  number: number
  poison: Poison | null
  topic: string
  payload: Buffer
  qos: 0 | 1 | 2
  records: readonly ExpectedRecord[]
  /** Monotonic, of each time. */
  sentMs: number[]
  ackedMs: number | null
  /** The device has lost its memory, or knows that no gateway takes the message. */
  isForgotten: boolean
  /** Nothing tells the gateway for sure that a copy is the same message. */
  mayBeTwice: boolean
  /** Of the messages with one of these numbers, one at most is the first that the gateway takes of the device. */
  forgettings: number[]
}

export type Fleet = {
  messages: readonly SentMessage[]
  /** Of the network path on which its messages come to the gateway. */
  host: string
  /** One of the devices sends this often from now on, and each of them at least every 15 s, also those that had stopped. */
  setRate(everyMs: number): void
  /** Devices whose payloads are all refused send nothing new, if there are others of their provider. */
  stopDoomed(): void
  /** Stops sending new messages; what is not acknowledged is sent on. */
  stopNew(): void
  isIdle(): boolean
  /** A device is away, or came back just now: it has messages of before. */
  isAnyAway(): boolean
  /** What the gateway may not answer. */
  wrong: string[]
  /** From now on each connection gets its answers, unless the gateway says that it holds them. */
  faultsEnded(): void
  /** Drops the connection of one device. Some lose their memory too. */
  dropOne(): void
  /** What one device is sent gets lost for `deafMs`; then it stays away for `awayMs`. */
  sendAway(away: Away): void
  /** The wall clock was set: the window of duplicates, which it measures, is void for what is on its way. */
  clockStepped(): void
  /** A write failed: perhaps the disk has it nevertheless, and without a time nothing tells a copy from another. */
  storeLost(): void
  /** The gateway acknowledges nothing for now, or does so again: a stop does not wait for that. */
  held(isHeld: boolean): void
  /** It takes in what it read meanwhile: a stop waits for that. */
  resumed(): void
  /**
   * A person has the gateway forget what it knows of a device; one of its messages goes on its way just then. The
   * function that it returns is called with the answer. Null where no device remembers something.
   */
  forget(): { id: string; done: () => void } | null
  /** A device with messages under way sends one more, which arrives at once. */
  sendAtOnce(): void
  /** The gateway closes the spool and begins again: short expiries of sessions count from then on. */
  spoolRefused(): void
  /**
   * The gateway is told to stop. The function that it returns notes what it read and did not acknowledge, and what it
   * took although it was told.
   */
  stopping(): () => void
  /** When the network of the devices was last not as usual. */
  disturbedMs: number
  /** Called once, at the next acknowledgement, or answer to a connection, that reaches a device. */
  atNextAnswer: (() => void) | null
  /** Called when a device hears that it has a new session. */
  onNewSession: () => void
  counters: { connects: number; refused: number; acks: number; resends: number }
  /** When the wall clock was set, monotonic. */
  clockSetMs: readonly number[]
}

type Away = { deafMs: number; awayMs: number; losesMemory: boolean }

type Deps = { kernel: Kernel; network: Network; random: Random; port: number }

/** `at`: the connection on which it was sent last. */
type Open = { message: SentMessage; packetId: number; isReleased: boolean; at: number }
type Answer = 'puback' | 'pubrec' | 'pubcomp'

const eagerMs = 60
const forgetTries = 20
const keepAliveMs = 60_000
const answerMs = 30_000
/** Within it the gateway knows a payload again; it promises 10 minutes. */
const windowMs = 9 * 60_000
const calmMsMax = 15_000
/** What was sent so long ago is read, where the network is as usual. */
const readMs = 10
/** Within it what was written before has ended, and the gateway reads on. */
const holdReadsMs = 2500
/** So soon a gateway that is told to stop takes nothing more. */
const stopsMs = 500
/** Until it has connected, and sent what it kept. */
const backMs = 20_000
/** The request to forget arrives by then. */
const forgetMsMax = 8
/** What was under way in a network that was slow has arrived. */
const calmMs = 2500
/** An expiry ends a session so soon, where its connection ended in order. */
const expiresMs = 2000
/** The setting of the gateway, for MQTT 3.1.1. */
const usualExpiryS = 86_400
/** Reason codes of DISCONNECT that say that a client broke the protocol: malformed, error, too much, not known. */
const accusations = [0x81, 0x82, 0x93, 0x94, 0x99, 0x9a, 0x9b]

/** Each of its sessions is the one before. */
export function isSessionSteady({
  cleanShare,
  version,
  expiriesS,
}: Pick<DevicePlan, 'cleanShare' | 'version' | 'expiriesS'>): boolean {
  return (
    cleanShare === 1 || (cleanShare === 0 && (version === 4 || expiriesS.every((s) => s === usualExpiryS)))
  )
}

export function createFleet({ kernel, network, random, port }: Deps, plans: readonly DevicePlan[]): Fleet {
  const messages: SentMessage[] = []
  const wrong: string[] = []
  const counters = { connects: 0, refused: 0, acks: 0, resends: 0 }
  const clockSetMs: number[] = []
  let isStopped = false
  let isDoomedStopped = false
  let faultsEndedMs = Number.POSITIVE_INFINITY
  let forgets = 0
  let isHeld = false
  let heldMs = Number.NEGATIVE_INFINITY
  /** What was sent in a hold before then is read, where the hold was long. */
  let readUntilMs = Number.NEGATIVE_INFINITY
  /** What was sent to the process `life` after `atMs` is for the next one. */
  let stop: { life: number; atMs: number; taken: string[] } | null = null
  const devices = plans.map((plan, index) => createDevice(plan, index))
  const fleet: Fleet = {
    messages,
    host: 'devices',
    wrong,
    counters,
    clockSetMs,
    disturbedMs: 0,
    atNextAnswer: null,
    onNewSession: () => undefined,
    setRate(everyMs) {
      isStopped = false
      for (const device of devices) device.setRate(Math.min(everyMs * devices.length, calmMsMax))
    },
    stopDoomed() {
      isDoomedStopped = true
    },
    stopNew() {
      isStopped = true
    },
    isIdle: () =>
      messages.every(({ qos, ackedMs, isForgotten }) => qos === 0 || ackedMs !== null || isForgotten),
    isAnyAway: () => devices.some((device) => device.isAway()),
    faultsEnded() {
      faultsEndedMs = kernel.monotonicMs
    },
    dropOne() {
      random.pick(devices).drop(random.chance(0.25))
    },
    sendAway(away) {
      random.pick(devices).goAway(away)
    },
    storeLost() {
      for (const message of messages)
        if (message.ackedMs === null && message.poison !== null) message.mayBeTwice = true
    },
    held(isHeldNow) {
      isHeld = isHeldNow
      if (isHeld) heldMs = kernel.monotonicMs
    },
    resumed() {
      const now = kernel.monotonicMs
      if (now - heldMs > holdReadsMs) readUntilMs = now - readMs
    },
    sendAtOnce() {
      const path = network.world.path('devices')
      const { delayMs } = path
      const some = devices.filter((device) => device.maySend())
      if (some.length === 0) return
      path.delayMs = 0
      random.pick(some).sendOne()
      path.delayMs = delayMs
    },
    forget() {
      const some = devices.filter((device) => device.mayBeForgotten())
      return some.length === 0 ? null : random.pick(some).forget()
    },
    spoolRefused() {
      for (const device of devices) device.expireLater()
    },
    stopping() {
      const checks = isHeld ? [] : devices.flatMap((device) => device.readMessage() ?? [])
      const mine = { life: kernel.life, atMs: kernel.monotonicMs + stopsMs, taken: [] }
      stop = mine
      return () => {
        if (heldMs < mine.atMs - stopsMs) for (const check of checks) check()
        wrong.push(...mine.taken)
      }
    },
    clockStepped() {
      clockSetMs.push(kernel.monotonicMs)
      for (const message of messages) if (message.ackedMs === null) message.mayBeTwice = true
    },
  }
  return fleet

  function createDevice(plan: DevicePlan, index: number) {
    const is5 = plan.version === 5
    const maker = createMessageMaker({ kernel, random }, plan, index)
    const isReplaceable =
      plan.isDoomed && plans.some(({ isDoomed, provider }) => !isDoomed && provider === plan.provider)
    /** Not acknowledged, in their order, with the packet identifier under which they were sent. */
    const open: Open[] = []
    const queue: SentMessage[] = []
    /** What the gateway must answer on this connection, in this order. */
    let expected: { answer: Answer; packetId: number }[] = []
    let end: WorldEnd | null = null
    let isConnected = false
    let isDeaf = false
    let awayUntilMs = Number.NEGATIVE_INFINITY
    let buffered: Buffer = Buffer.alloc(0)
    let lastPacketId = plan.identifiers === 'counting' ? random.below(65_535) : 0
    /** Of what was asked for last, until the next message after the answer. */
    let forgetting: number | null = null
    let isAnswered = true
    let lastHeardMs = 0
    /** Of the session, which the gateway may have ended a while after. */
    let lastUsedMs = 0
    let hasPinged = false
    let connection = 0
    let connectMs = 0
    /** Of the process that accepted it; one that lost its power leaves it open here. */
    let life = 0
    /** The last connection that it ended itself. */
    let ended = 0
    let isClean = false
    /** It has sent what ends the connection. */
    let isPoisoned = false
    let session: 'none' | 'perhaps' | 'stored' = 'none'
    /** What its session lives without a connection: the gateway may have the last change of it or not. */
    let kept = { minS: 0, maxS: 0 }
    let askedS = 0
    /** When the gateway saw the end of the last connection at once, and in which process. */
    let goneSince: { atMs: number; life: number } | null = null
    let receiveMaximum = Infinity

    // What depends on the message before is not known then. Equal messages under an identifier that was not released
    // are one, and such a device must not forget it.
    const isOrdered = plan.kind === 'differences' || plan.kind === 'parts'
    const mayForget = !isOrdered && (plan.kind !== 'parkedUntimed' || plan.identifiers === 'counting')
    let { everyMs } = plan
    let isCalm = false
    let cancelProduce = kernel.at(random.below(Math.min(5000, everyMs)), produce)
    kernel.at(random.below(2000), connect)
    return {
      drop(losesMemory: boolean) {
        if (losesMemory && mayForget) forgetAll()
        ended = connection
        end?.reset()
      },
      goAway({ deafMs, awayMs, losesMemory }: Away) {
        const forgets = losesMemory && mayForget
        let tries = 0
        isDeaf = end !== null
        kernel.at(deafMs, leave)

        function leave(): void {
          // What it forgets is on its way, where it sends something soon.
          if (forgets && isDeaf && open.length === 0 && tries < forgetTries) {
            tries += 1
            kernel.at(1000, leave)
            return
          }
          awayUntilMs = kernel.monotonicMs + awayMs
          if (forgets) forgetAll()
          if (end === null) return
          // One that has everything says goodbye.
          if (isConnected && !isDeaf && open.length === 0) end.write(goodbye())
          ended = connection
          if (isConnected) goneSince = { atMs: kernel.monotonicMs, life }
          end.reset()
        }
      },
      /** Of the message that the gateway must have read; the function that it returns looks whether it acknowledged it. */
      readMessage(): (() => void) | null {
        const sentMsOf = ({ message }: Open) => message.sentMs.at(-1) ?? 0
        const held = open.findLast((one) => sentMsOf(one) < readUntilMs && one.at === connection)
        const read = held ?? open[0]
        if (read === undefined || !isConnected || isDeaf || isPoisoned || life !== kernel.life) return null
        const sentMs = sentMsOf(read)
        if (read.at !== connection || read.isReleased || kernel.monotonicMs - sentMs < readMs) return null
        const { message } = read
        const mine = connection
        return () => {
          const isLost =
            isDeaf || ended === mine || message.isForgotten || fleet.disturbedMs + calmMs > sentMs
          if (message.ackedMs === null && !isLost)
            isWrong(`message ${message.number} was read before a stop in order, and not acknowledged`)
        }
      },
      expireLater() {
        goneSince = null
      },
      maySend: () => isConnected && !isStopped && !isDeaf && open.length > 0 && open.length < plan.window,
      sendOne() {
        produceOne()
        send()
      },
      mayBeForgotten: () => plan.kind === 'differences' && forgetting === null,
      forget,
      isAway: () => isDeaf || kernel.monotonicMs < awayUntilMs + backMs,
      setRate(next: number) {
        isCalm = true
        everyMs = next
        cancelProduce()
        cancelProduce = kernel.at(random.below(everyMs), produce)
      },
    }

    function forget(): { id: string; done: () => void } {
      forgets += 1
      forgetting = forgets
      isAnswered = false
      // What is acknowledged is stored, and open only for the rest of QoS 2.
      for (const { message } of open) if (message.ackedMs === null) message.forgettings.push(forgets)
      for (const message of queue) message.forgettings.push(forgets)
      kernel.at(random.below(forgetMsMax), () => {
        cancelProduce()
        produce()
      })
      return { id: plan.id, done: () => void (isAnswered = true) }
    }

    function forgetAll(): void {
      for (const { message } of open) message.isForgotten = true
      for (const message of queue) message.isForgotten = true
      open.length = 0
      queue.length = 0
      // Nothing but the identifier tells its messages apart; from 1 on they would be those of the last time.
      lastPacketId = plan.kind === 'parkedUntimed' ? random.below(65_535) : 0
    }

    function produce(): void {
      if (isStopped || (isDoomedStopped && isReplaceable)) return
      for (let left = isCalm ? 1 : plan.burst; left > 0; left -= 1) produceOne()
      send()
      cancelProduce = kernel.at(everyMs * (0.5 + random.next()), produce)
    }

    function produceOne(): void {
      const made = maker.next(forgetting)
      if (isAnswered && made.some(({ poison }) => poison === null)) forgetting = null
      messages.push(...made)
      queue.push(...made)
    }

    // ---- connections

    function connect(): void {
      if (kernel.monotonicMs < awayUntilMs) {
        kernel.at(awayUntilMs - kernel.monotonicMs, connect)
        return
      }
      counters.connects += 1
      buffered = Buffer.alloc(0)
      expected = []
      isConnected = false
      isDeaf = false
      hasPinged = false
      isPoisoned = false
      const connected = network.world.connect({ port, from: `10.0.1.${(index % 250) + 1}` })
      if (connected === null) {
        counters.refused += 1
        kernel.at(plan.isEager ? eagerMs : retryMs(), connect)
        return
      }
      end = connected
      connection += 1
      // What it answers may still come when it has ended.
      life = kernel.life
      connectMs = kernel.monotonicMs
      lastHeardMs = kernel.monotonicMs
      connected.onData = (bytes) => {
        if (end === connected && !isDeaf) received(bytes)
      }
      connected.onClose = () => {
        if (end === connected) closed()
      }
      isClean = random.chance(plan.cleanShare)
      const fields = { clientId: plan.id, keepAliveS: 60, flags: isClean ? 2 : 0 }
      const storesSession = plan.cleanShare < 1
      const forS = random.pick(plan.expiriesS)
      askedS = !is5 ? (isClean ? 0 : usualExpiryS) : storesSession ? forS : 0
      const properties = storesSession ? [property.sessionExpiry, uint32(askedS)] : []
      connected.write(is5 ? connectPacket({ ...fields, properties }) : connectPacket3(fields))
      // Until the answer comes: a clean one has perhaps ended it, another one perhaps made it or changed its end.
      if (isClean || session !== (askedS > 0 ? 'stored' : 'none')) session = 'perhaps'
      kept = { minS: Math.min(kept.minS, askedS), maxS: Math.max(kept.maxS, askedS) }
      watch(connected)
    }

    function goodbye(): Buffer {
      const forS = random.pick(plan.expiriesS)
      // What had no expiry gets none.
      if (!is5 || askedS === 0 || forS === askedS) return disconnectPacket()
      if (forS === 0) session = 'perhaps'
      kept = { minS: Math.min(kept.minS, forS), maxS: Math.max(kept.maxS, forS) }
      return disconnectPacket(0, [property.sessionExpiry, uint32(forS)])
    }

    function closed(): void {
      end = null
      isConnected = false
      // QoS 0 is sent once, and so is what ends the connection.
      for (let place = open.length - 1; place >= 0; place -= 1) {
        const { message } = open[place]!
        if (message.poison === null || !poisons[message.poison].endsConnection) continue
        message.isForgotten = true
        open.splice(place, 1)
      }
      kernel.at(retryMs(), connect)
    }

    /** A device that hears nothing connects again. */
    function watch(mine: WorldEnd): void {
      kernel.at(answerMs, () => {
        if (end !== mine) return
        if (kernel.monotonicMs - lastHeardMs > keepAliveMs) {
          const wasHeld = isHeld || heldMs > connectMs
          if (isConnected && !isDeaf && !wasHeld && life === kernel.life && connectMs > faultsEndedMs)
            isWrong(`it heard nothing for ${keepAliveMs / 1000} s, although nothing is in its way`)
          ended = connection
          mine.reset()
          return
        }
        // The next one says that the answer to the one before has arrived, and all acknowledgements before it.
        if (isConnected && !isDeaf && !hasPinged) {
          mine.write(pingPacket)
          hasPinged = true
        }
        watch(mine)
      })
    }

    function retryMs(): number {
      return 500 + random.below(5000)
    }

    function received(bytes: Buffer): void {
      lastHeardMs = kernel.monotonicMs
      buffered = Buffer.concat([buffered, bytes])
      for (;;) {
        let packet: ServerPacket | null
        try {
          packet = is5 ? readServerPacket(buffered) : readServerPacket3(buffered)
        } catch (error) {
          isWrong(String(error))
          end?.reset()
          return
        }
        if (packet === null) return
        buffered = buffered.subarray(packet.bytes)
        answered(packet)
      }
    }

    function isWrong(what: string): void {
      wrong.push(`${plan.id}: ${what}`)
    }

    // ---- what the gateway sends

    function answered(packet: ServerPacket): void {
      const { type, code, messageId } = packet
      const { atNextAnswer } = fleet
      fleet.atNextAnswer = null
      atNextAnswer?.()
      if (type === 'connack') return connectionAnswered(packet)
      if (!isConnected) return isWrong(`${type} before CONNACK`)
      if (type === 'pingresp') {
        if (!hasPinged) isWrong('PINGRESP without a PINGREQ')
        hasPinged = false
        return
      }
      if (type === 'disconnect') {
        if (accusations.includes(code) && !isPoisoned) isWrong(`DISCONNECT ${code}`)
        return
      }
      const next = expected.shift()
      if (next === undefined || next.answer !== type || next.packetId !== messageId) {
        const due = next === undefined ? 'nothing' : `${next.answer} of ${next.packetId}`
        return isWrong(`${type} of ${messageId}, where ${due} is due`)
      }
      if (code >= 0x80) return isWrong(`${type} of ${messageId} with the code ${code}`)
      lastUsedMs = kernel.monotonicMs
      acknowledged(type, messageId)
    }

    function connectionAnswered({ code, sessionPresent, properties }: ServerPacket): void {
      if (code !== 0) {
        counters.refused += 1
        return
      }
      if (isConnected) isWrong('a second CONNACK')
      if (isClean && sessionPresent) isWrong('session present after a clean start')
      const isExpired = kernel.monotonicMs - lastUsedMs >= kept.minS * 1000
      if (!isClean && session === 'stored' && !sessionPresent && !isExpired) isWrong('its session is gone')
      const isOver =
        goneSince?.life === kernel.life &&
        fleet.disturbedMs + calmMs < goneSince.atMs &&
        connectMs - goneSince.atMs > kept.maxS * 1000 + expiresMs
      if (sessionPresent && isOver) isWrong('its session is present after its end')
      lastUsedMs = kernel.monotonicMs
      if (!isClean && session === 'none' && sessionPresent) isWrong('a session that it never had is present')
      const isNew = isClean || !sessionPresent
      session = askedS > 0 ? 'stored' : 'none'
      kept = { minS: askedS, maxS: askedS }
      goneSince = null
      receiveMaximum = Number(properties.get(property.receiveMaximum) ?? Infinity)
      isConnected = true
      if (stop?.life === life && connectMs > stop.atMs) stop.taken.push(`${plan.id} was let in during a stop`)
      if (plan.identifiers === 'fromOne')
        lastPacketId = open.reduce((last, { packetId }) => Math.max(last, packetId), 0)
      if (isNew && askedS > 0) fleet.onNewSession()
      resend(isNew)
      send()
    }

    function acknowledged(answer: Answer, packetId: number): void {
      const place = open.findIndex((one) => one.packetId === packetId)
      const entry = open[place]
      if (entry === undefined) return isWrong(`${answer} of ${packetId}, which is not in use`)
      const { message } = entry
      if (message.poison !== null && poisons[message.poison].endsConnection)
        isWrong(`${answer} of ${message.poison}`)
      if (stop?.life === life && (message.sentMs.at(-1) ?? 0) > stop.atMs)
        stop.taken.push(`message ${message.number} of ${plan.id} was taken during a stop`)
      if (message.ackedMs === null) {
        message.ackedMs = kernel.monotonicMs
        counters.acks += 1
      }
      if (answer === 'pubrec') {
        // The receipt is the promise: from now on the gateway has it.
        entry.isReleased = true
        release(packetId)
        return
      }
      open.splice(place, 1)
      send()
    }

    // ---- what it sends

    function resend(isNewSession: boolean): void {
      // What was released belonged to the session.
      if (isNewSession)
        for (let place = open.length - 1; place >= 0; place -= 1)
          if (open[place]!.isReleased) open.splice(place, 1)
      for (const entry of open) {
        if (entry.isReleased) release(entry.packetId)
        else publish(entry)
      }
    }

    function release(packetId: number): void {
      expected.push({ answer: 'pubcomp', packetId })
      const bytes = [0x62, 2, packetId >> 8, packetId & 255]
      end?.write(is5 ? pubrelPacket(packetId) : Buffer.from(bytes))
    }

    function send(): void {
      if (!isConnected) return
      while (open.length < Math.min(plan.window, receiveMaximum)) {
        const message = queue.shift()
        if (message === undefined) return
        if (message.qos === 0) {
          message.sentMs.push(kernel.monotonicMs)
          write(message, 0, false)
          continue
        }
        const entry: Open = { message, packetId: nextPacketId(), isReleased: false, at: connection }
        open.push(entry)
        publish(entry)
      }
    }

    function nextPacketId(): number {
      const used = new Set(open.map(({ packetId }) => packetId))
      let packetId = plan.identifiers === 'lowest' ? 1 : (lastPacketId % 65_535) + 1
      while (used.has(packetId)) packetId = (packetId % 65_535) + 1
      lastPacketId = packetId
      return packetId
    }

    function publish(entry: Open): void {
      const { message, packetId } = entry
      const isResent = message.sentMs.length > 0
      if (isResent) counters.resends += 1
      message.mayBeTwice ||= isResent && isUndecidable(entry)
      entry.at = connection
      message.sentMs.push(kernel.monotonicMs)
      expected.push({ answer: message.qos === 1 ? 'puback' : 'pubrec', packetId })
      write(message, packetId, isResent)
    }

    /** Whether the gateway may store it once more: untimed-resends.ts of the daemon says when. */
    function isUndecidable({ message, at }: Open): boolean {
      if (kernel.monotonicMs - message.sentMs[0]! > windowMs) return true
      const hasTime = message.poison === null && plan.clockMs < 60_000 && !isUntimed(plan.kind)
      if (hasTime) return false
      if (message.qos === 2) return !isSessionSteady(plan)
      return at < connection - 1 || plan.identifiers === 'lowest' || message.sentMs.length > 1
    }

    function write({ topic, payload, qos, poison }: SentMessage, messageId: number, dup: boolean): void {
      isPoisoned ||= poison !== null && poisons[poison].endsConnection
      const fields = { topic, payload, qos, messageId, dup }
      end?.write(is5 ? publishPacket(fields) : publishPacket3(fields))
    }
  }
}
