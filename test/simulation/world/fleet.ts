// fleet.ts: the devices of the simulated world: bare MQTT clients (3.1.1 and 5). Each message has a name of its own,
// and a device keeps it until the gateway has acknowledged it, over reconnects and restarts of the gateway.
//
// What they saw is what the oracle knows: sent, acknowledged, in which order.

import { connectPacket, pingPacket, publishPacket, pubrelPacket } from '../../support/mqtt5-packets.ts'
import { readServerPacket } from '../../support/mqtt5-reader.ts'
import { connectPacket3, publishPacket3, readServerPacket3 } from '../../support/mqtt3-packets.ts'
import type { ServerPacket } from '../../support/mqtt5-reader.ts'
import type { Random } from '../../support/random.ts'
import type { Kernel } from '../machine/kernel.ts'
import type { Network, WorldEnd } from '../machine/network.ts'

export type DevicePlan = {
  id: string
  provider: string
  version: 4 | 5
  qos: 0 | 1 | 2
  /** Messages that it sends before it waits for an acknowledgement. */
  window: number
  everyMs: number
  /** Messages at once, each time. */
  burst: number
  /** Share of messages that are not what the mapping reads. */
  poison: number
  /** Its payloads are refused by the service as invalid. */
  isDoomed: boolean
  cleanSession: boolean
}

export type SentMessage = {
  device: DevicePlan
  /** Unique for the device, and the time in the message. */
  ts: number
  number: number
  isPoison: boolean
  topic: string
  payload: Buffer
  qos: 0 | 1 | 2
  sends: number
  ackedMs: number | null
}

export type Fleet = {
  messages: readonly SentMessage[]
  /** All devices send this often from now on. */
  setRate(everyMs: number): void
  /** Stops sending new messages; what is not acknowledged is sent on. */
  stopNew(): void
  isIdle(): boolean
  /** What the gateway may not answer. */
  wrong: string[]
  /** Drops the connection of one device. */
  dropOne(): void
  counters: { connects: number; refused: number; acks: number; resends: number }
}

type Deps = { kernel: Kernel; network: Network; random: Random; port: number }

const keepAliveMs = 60_000
const answerMs = 30_000

export function createFleet({ kernel, network, random, port }: Deps, plans: readonly DevicePlan[]): Fleet {
  const messages: SentMessage[] = []
  const wrong: string[] = []
  const counters = { connects: 0, refused: 0, acks: 0, resends: 0 }
  let isStopped = false
  const devices = plans.map((plan, index) => createDevice(plan, index))
  return {
    messages,
    wrong,
    counters,
    setRate(everyMs) {
      for (const device of devices) device.setRate(everyMs)
    },
    stopNew() {
      isStopped = true
    },
    isIdle: () => messages.every(({ qos, ackedMs }) => qos === 0 || ackedMs !== null),
    dropOne() {
      random.pick(devices).drop()
    },
  }

  function createDevice(plan: DevicePlan, index: number) {
    /** Not acknowledged, in their order, with the packet identifier under which they were sent. */
    const open: { message: SentMessage; packetId: number; isReleased: boolean }[] = []
    const queue: SentMessage[] = []
    let end: WorldEnd | null = null
    let isConnected = false
    let buffered: Buffer = Buffer.alloc(0)
    let lastPacketId = 0
    let lastTs = 0
    let number = 0
    let lastHeardMs = 0
    const is5 = plan.version === 5

    let { everyMs } = plan
    let isCalm = false
    let cancelProduce = kernel.at(random.below(Math.min(5000, everyMs)), produce)
    kernel.at(random.below(2000), connect)
    return {
      drop() {
        end?.reset()
      },
      setRate(next: number) {
        isCalm = true
        everyMs = next
        cancelProduce()
        cancelProduce = kernel.at(random.below(everyMs), produce)
      },
    }

    function produce(): void {
      if (isStopped) return
      for (let left = isCalm ? 1 : plan.burst; left > 0; left -= 1) produceOne()
      send()
      cancelProduce = kernel.at(everyMs * (0.5 + random.next()), produce)
    }

    function produceOne(): void {
      number += 1
      const isPoison = random.chance(plan.poison)
      lastTs = Math.max(lastTs + 1, Math.floor(kernel.trueMs))
      const content = {
        ts: lastTs,
        lat: latitudeOf(number),
        lon: 13 + index / 100,
        odometer: odometerOf(number),
      }
      const message: SentMessage = {
        device: plan,
        ts: lastTs,
        number,
        isPoison,
        topic: `${plan.provider}/${plan.id}`,
        payload: Buffer.from(isPoison ? `broken ${plan.id} ${number}` : JSON.stringify(content)),
        qos: plan.qos,
        sends: 0,
        ackedMs: null,
      }
      messages.push(message)
      queue.push(message)
    }

    function connect(): void {
      counters.connects += 1
      buffered = Buffer.alloc(0)
      isConnected = false
      const connected = network.world.connect({ port, from: `10.0.1.${(index % 250) + 1}` })
      if (connected === null) {
        counters.refused += 1
        kernel.at(retryMs(), connect)
        return
      }
      end = connected
      lastHeardMs = kernel.monotonicMs
      connected.onData = (bytes) => {
        if (end === connected) received(bytes)
      }
      connected.onClose = () => {
        if (end !== connected) return
        end = null
        isConnected = false
        // QoS 0 is sent once. A clean session of QoS 2 forgets which message was released.
        for (let place = open.length - 1; place >= 0; place -= 1)
          if (open[place]!.message.qos === 0) open.splice(place, 1)
        kernel.at(retryMs(), connect)
      }
      const fields = { clientId: plan.id, keepAliveS: 60 }
      connected.write(
        is5
          ? connectPacket({ ...fields, flags: plan.cleanSession ? 2 : 0 })
          : connectPacket3({ ...fields, flags: plan.cleanSession ? 2 : 0 }),
      )
      watch(connected)
    }

    /** A device that hears nothing connects again. */
    function watch(mine: WorldEnd): void {
      kernel.at(answerMs, () => {
        if (end !== mine) return
        const waits = !isConnected || open.some(({ message }) => message.qos > 0)
        if (waits && kernel.monotonicMs - lastHeardMs > keepAliveMs) {
          mine.reset()
          return
        }
        if (isConnected) mine.write(pingPacket)
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
          wrong.push(`${plan.id}: ${String(error)}`)
          end?.reset()
          return
        }
        if (packet === null) return
        buffered = buffered.subarray(packet.bytes)
        answered(packet)
      }
    }

    function answered({ type, code, messageId, sessionPresent }: ServerPacket): void {
      if (type === 'connack') {
        if (code !== 0) {
          counters.refused += 1
          return
        }
        isConnected = true
        resend(sessionPresent)
        send()
        return
      }
      if (type === 'disconnect' || type === 'pingresp') return
      const found = open.findIndex(({ packetId }) => packetId === messageId)
      const entry = open[found]
      if (entry === undefined) {
        wrong.push(`${plan.id}: ${type} for the packet identifier ${messageId}, which is not in use`)
        return
      }
      if (type === 'pubrec') {
        if (code >= 0x80) {
          wrong.push(`${plan.id}: PUBREC ${code}`)
          return
        }
        entry.isReleased = true
        // The receipt is the promise: from now on the gateway has it.
        acked(entry.message)
        end?.write(is5 ? pubrelPacket(messageId) : Buffer.from([0x62, 2, messageId >> 8, messageId & 255]))
        return
      }
      if (code >= 0x80) {
        wrong.push(`${plan.id}: ${type} ${code}`)
        return
      }
      const before = open.slice(0, found).find(({ message }) => message.qos === entry.message.qos)
      if (type === 'puback' && before !== undefined)
        wrong.push(`${plan.id}: PUBACK of message ${entry.message.number} before ${before.message.number}`)
      open.splice(found, 1)
      acked(entry.message)
      send()
    }

    function acked(message: SentMessage): void {
      if (message.ackedMs !== null) return
      message.ackedMs = kernel.monotonicMs
      counters.acks += 1
    }

    function resend(sessionPresent: boolean): void {
      for (const entry of open) {
        if (entry.isReleased && (sessionPresent || plan.cleanSession)) {
          const { packetId } = entry
          end?.write(is5 ? pubrelPacket(packetId) : Buffer.from([0x62, 2, packetId >> 8, packetId & 255]))
          continue
        }
        counters.resends += 1
        publish(entry.message, entry.packetId, !plan.cleanSession || entry.message.sends > 0)
      }
    }

    function send(): void {
      if (!isConnected) return
      while (open.length < plan.window) {
        const message = queue.shift()
        if (message === undefined) return
        if (message.qos === 0) {
          publish(message, 0, false)
          continue
        }
        lastPacketId = (lastPacketId % 60_000) + 1
        open.push({ message, packetId: lastPacketId, isReleased: false })
        publish(message, lastPacketId, false)
      }
    }

    function publish(message: SentMessage, messageId: number, dup: boolean): void {
      message.sends += 1
      const { topic, payload, qos } = message
      const fields = { topic, payload, qos, messageId, dup }
      end?.write(is5 ? publishPacket(fields) : publishPacket3(fields))
    }
  }
}

/** In km: some metres from message to message, or the mapping would not believe it. */
export function odometerOf(number: number): number {
  return Math.round(1_000_000 + number) / 1000
}

export function latitudeOf(number: number): number {
  return Math.round((50 + (number % 1000) / 1000) * 1000) / 1000
}
