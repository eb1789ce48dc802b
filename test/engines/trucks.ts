// trucks.ts: devices that publish to an engine over MQTT with QoS 1, and count what was acknowledged to them. Each has a
// connection of its own and one message on the way: it publishes number n + 1 after the PUBACK of n, and n again where
// the connection ended before. So the numbers of a device reach the engine in their order.

import { connectAsync, type MqttClient } from 'mqtt'
import { onTestFinished } from 'vitest'
import { eventually } from '../support/eventually.ts'

/** Device time of the number 0; one millisecond for each number. */
export const startMs = Date.now()

export type Trucks = {
  /** By device: its numbers from 1 to this one were acknowledged. */
  readonly acked: ReadonlyMap<string, number>
  ackedCount(): number
  /** Publishes that were repeated because the answer did not come. */
  readonly repeated: number
  /** Waits for `count` further acknowledgements. */
  more(count: number): Promise<void>
  /** Waits for the acknowledgements of what is on the way. */
  pause(): Promise<void>
  resume(): void
  stop(): Promise<void>
}

export type TruckOptions = {
  count?: number
  /** Between an acknowledgement and the next message. */
  pauseMs?: number
  /** What a truck publishes in place of a position; undefined for a position. */
  content?: (device: string, number: number) => string | undefined
}

export const deviceName = (index: number) => `truck-${index}`

/** Each truck begins at another node, and tries the next one when its connection ends. */
export function startTrucks(mqttUrls: readonly string[], options: TruckOptions = {}): Trucks {
  const { count = 20, pauseMs = 20, content = () => undefined } = options
  const acked = new Map<string, number>()
  let repeated = 0
  const state = { isPaused: false, isStopped: false }
  let onTheWay = 0
  const drives = Array.from({ length: count }, (_, index) => drive(index))

  async function drive(index: number): Promise<void> {
    const device = deviceName(index)
    acked.set(device, 0)
    let client: MqttClient | null = null
    for (let number = 1, node = index; ;) {
      while (state.isPaused && !state.isStopped) await pause(10)
      if (state.isStopped) break
      onTheWay += 1
      try {
        client ??= await open(mqttUrls[node % mqttUrls.length]!, device)
        await publish(client, device, number)
        acked.set(device, number)
        number += 1
      } catch {
        repeated += 1
        client?.end(true)
        client = null
        node += 1
      } finally {
        onTheWay -= 1
      }
      await pause(client === null ? 100 : pauseMs)
    }
    client?.end(true)
  }

  async function publish(client: MqttClient, device: string, number: number): Promise<void> {
    const position = { t: startMs + number, x: 52 + number / 1e6, y: 13 }
    const ended = new Promise<never>((_, reject) => {
      client.once('close', () => reject(new Error('closed')))
      setTimeout(() => reject(new Error('no answer')), answerMs)
    })
    const text = content(device, number) ?? JSON.stringify(position)
    await Promise.race([client.publishAsync(`t/${device}`, text, { qos: 1 }), ended])
    client.removeAllListeners('close')
  }

  const ackedCount = () => [...acked.values()].reduce((sum, number) => sum + number, 0)
  const trucks: Trucks = {
    acked,
    ackedCount,
    get repeated() {
      return repeated
    },
    more(wanted) {
      const from = ackedCount()
      return eventually(() => ackedCount() >= from + wanted)
    },
    async pause() {
      state.isPaused = true
      await eventually(() => onTheWay === 0)
    },
    resume() {
      state.isPaused = false
    },
    async stop() {
      state.isStopped = true
      await Promise.all(drives)
    },
  }
  onTestFinished(() => trucks.stop())
  return trucks
}

const answerMs = 20_000

async function open(url: string, clientId: string): Promise<MqttClient> {
  const client = await connectAsync(
    url,
    {
      clientId,
      protocolVersion: 4,
      username: 'guest',
      password: 'guest',
      reconnectPeriod: 0,
      connectTimeout: 5000,
    },
    false,
  )
  client.on('error', () => undefined)
  return client
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}
