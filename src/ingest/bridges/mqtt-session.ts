// mqtt-session.ts: what a bridge asks of mqtt.js: the options of a connection, and subscriptions as promises.

import type { IClientOptions, IClientSubscribeOptions, MqttClient } from 'mqtt'
import type { IUnsubackPacket } from 'mqtt-packet'
import { refusedFrom, type Granted } from './bridge-faults/bridge-faults.ts'
import type { BridgeOptions } from './types.ts'

/** MQTT 5, 3.8.3.1: retained messages for new subscriptions only, or never. */
const retainHandling = { once: 1, ignore: 2 } as const

export function connectOptions(options: BridgeOptions, clientId: string): IClientOptions {
  const { isVersion5, userName, password, keepsSession } = options
  return {
    clientId,
    protocolId: 'MQTT',
    protocolVersion: isVersion5 ? 5 : 4,
    clean: !keepsSession,
    keepalive: Math.max(1, Math.round(options.keepaliveMs / 1000)),
    connectTimeout: options.connectTimeoutMs,
    // One client object for one connection (bridges.ts).
    reconnectPeriod: 0,
    resubscribe: false,
    queueQoSZero: false,
    timerVariant: 'native',
    ...(userName !== null && { username: userName }),
    ...(password !== null && { password: password.reveal() }),
    ...(isVersion5 && {
      properties: {
        sessionExpiryInterval: keepsSession ? Math.round(options.sessionExpiryMs / 1000) : 0,
        receiveMaximum: options.window,
      },
    }),
  }
}

export function filtersOf({ topics, shareGroup }: BridgeOptions): readonly string[] {
  return shareGroup === null ? topics : topics.map((topic) => `$share/${shareGroup}/${topic}`)
}

/** AWS IoT Core ends a connection that sends more in one packet. */
const filtersPerPacketMax = 8

function inPackets(filters: readonly string[]): string[][] {
  const packets = Math.ceil(filters.length / filtersPerPacketMax)
  return Array.from({ length: packets }, (_, n) =>
    filters.slice(n * filtersPerPacketMax, (n + 1) * filtersPerPacketMax),
  )
}

/** Resolves with the answer to each filter, also where one is refused; rejects where there is no answer. */
export async function subscribe(
  client: MqttClient,
  options: BridgeOptions,
  filters = filtersOf(options),
): Promise<readonly Granted[]> {
  const how: IClientSubscribeOptions = {
    qos: options.qos,
    // Without "retain as published": the flag then says that a message was stored, not that it will be.
    ...(options.isVersion5 && { rh: retainHandling[options.retained], rap: false }),
  }
  const granted = inPackets(filters).map((packet) => subscribePacket(client, packet, how))
  return (await Promise.all(granted)).flat()
}

function subscribePacket(
  client: MqttClient,
  filters: string[],
  how: IClientSubscribeOptions,
): Promise<readonly Granted[]> {
  return new Promise((resolve, reject) => {
    client.subscribe(filters, how, (error, _granted, suback) => {
      const codes = suback?.granted.map(Number)
      if (codes?.length === filters.length)
        resolve(filters.map((filter, index) => ({ filter, code: codes[index]! })))
      else reject(error ?? new Error('the broker did not answer the subscription'))
    })
  })
}

/** Rejects, too, where the broker refuses it (MQTT 5, 3.11.3). */
export async function unsubscribe(client: MqttClient, filters: readonly string[]): Promise<void> {
  await Promise.all(inPackets(filters).map((packet) => unsubscribePacket(client, packet)))
}

function unsubscribePacket(client: MqttClient, filters: string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    client.unsubscribe(filters, (error, packet) => {
      const { granted = [] } = (packet ?? {}) as Partial<IUnsubackPacket>
      if (error) reject(error)
      else if (granted.some((code) => code >= refusedFrom)) reject(new Error('the broker refuses it'))
      else resolve()
    })
  })
}
