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

/** Resolves with the answer to each filter, also where one is refused; rejects where there is no answer. */
export function subscribe(client: MqttClient, options: BridgeOptions): Promise<readonly Granted[]> {
  const filters = filtersOf(options)
  const how: IClientSubscribeOptions = {
    qos: options.qos,
    // Without "retain as published": the flag then says that a message was stored, not that it will be.
    ...(options.isVersion5 && { rh: retainHandling[options.retained], rap: false }),
  }
  return new Promise((resolve, reject) => {
    client.subscribe([...filters], how, (error, _granted, suback) => {
      const codes = suback?.granted.map(Number)
      if (codes?.length === filters.length)
        resolve(filters.map((filter, index) => ({ filter, code: codes[index]! })))
      else reject(error ?? new Error('the broker did not answer the subscription'))
    })
  })
}

/** Rejects, too, where the broker refuses it (MQTT 5, 3.11.3). */
export function unsubscribe(client: MqttClient, filters: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    client.unsubscribe([...filters], (error, packet) => {
      const { granted = [] } = (packet ?? {}) as Partial<IUnsubackPacket>
      if (error) reject(error)
      else if (granted.some((code) => code >= refusedFrom)) reject(new Error('the broker refuses it'))
      else resolve()
    })
  })
}
