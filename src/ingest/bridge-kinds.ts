// bridge-kinds.ts: what `ingest.bridges[]` may name. The scheme of `url` chooses the kind and its options:
//
//   mqtt mqtts ws wss    a broker of MQTT     bridges/
//   amqp amqps           RabbitMQ             amqp/
//   nats nats+tls        NATS JetStream       jetstream/
//
// Outside of its folder a bridge is known by what all kinds have: name, kind, `topics` as filters of MQTT,
// user name, password and certificate. The clients, which take 3 MB, are loaded for a bridge that needs them.

import { z } from 'zod'
import type { Clock } from '../std/clock.ts'
import type { Emit } from '../domain/event.ts'
import { embeddedBrokerName } from '../domain/message.ts'
import { assertNever } from '../std/assert.ts'
import { nodesText } from './amqp/amqp-address.ts'
import type { AmqpOptions } from './amqp/amqp.ts'
import { amqpBridgeSchema, amqpOptions, amqpWarnings } from './amqp/amqp-config.ts'
import type { abilitiesOf, BridgeFinding, BridgeOptions } from './bridges/bridges.ts'
import { urlText } from './bridges/bridge-address.ts'
import {
  bridgeOptions,
  bridgeWarnings,
  clientIdsOf,
  mqttBridgeSchema,
  type BridgeWarning,
} from './bridges/bridge-config.ts'
import type { JetStreamOptions } from './jetstream/jetstream.ts'
import { jetstreamBridgeSchema, jetstreamOptions, jetstreamWarnings } from './jetstream/jetstream-config.ts'
import { urlsText } from './jetstream/nats-address.ts'
import type { SourceEntry } from './message-sources/message-sources.ts'

const bridgeSchema = z.union([mqttBridgeSchema, amqpBridgeSchema, jetstreamBridgeSchema])

export const bridgesSchema = z
  .array(bridgeSchema)
  .max(64)
  .default([])
  .superRefine((bridges, context) => {
    const names = new Set([embeddedBrokerName])
    const clients = new Set<string>()
    bridges.forEach((bridge, index) => {
      const refuse = (path: string, message: string) =>
        context.addIssue({ code: 'custom', path: [index, path], message })
      if (names.has(bridge.name)) refuse('name', `must be unique, and not "${embeddedBrokerName}"`)
      names.add(bridge.name)
      if (bridge.kind !== 'mqtt') return
      for (const clientId of clientIdsOf(bridge)) {
        const client = `${bridge.url.host}:${bridge.url.port} ${clientId}`
        if (clients.has(client))
          refuse('client_id', `must be unique at the broker: another connection is "${clientId}", too`)
        clients.add(client)
      }
    })
  })
  .describe(
    'Other brokers to receive messages from. A message is acknowledged after it is durable. Changed user names, ' +
      'passwords and certificates are used for the next connection; other changes need a restart.',
  )

export type AnyBridgeConfig = z.output<typeof bridgeSchema>

export type AnyBridgeOptions = BridgeOptions | AmqpOptions | JetStreamOptions

export function anyBridgeOptions(config: AnyBridgeConfig): AnyBridgeOptions {
  switch (config.kind) {
    case 'mqtt':
      return bridgeOptions(config)
    case 'amqp':
      return amqpOptions(config)
    case 'jetstream':
      return jetstreamOptions(config)
    default:
      return assertNever(config)
  }
}

export function anyBridgeWarnings(
  config: AnyBridgeConfig,
  isLoopback: (host: string) => boolean,
): BridgeWarning[] {
  switch (config.kind) {
    case 'mqtt':
      return bridgeWarnings(config, isLoopback)
    case 'amqp':
      return amqpWarnings(config, isLoopback)
    case 'jetstream':
      return jetstreamWarnings(config, isLoopback)
    default:
      return assertNever(config)
  }
}

/** The addresses as a person writes them, without user and password. */
export function addressText(config: AnyBridgeConfig): string {
  switch (config.kind) {
    case 'mqtt':
      return urlText(config.url)
    case 'amqp':
      return nodesText(config.url)
    case 'jetstream':
      return urlsText(jetstreamOptions(config))
    default:
      return assertNever(config)
  }
}

/** Tries a bridge for `check --connect`; takes no message. */
export async function checkAnyBridge(config: AnyBridgeConfig, stop: AbortSignal): Promise<BridgeFinding> {
  switch (config.kind) {
    case 'mqtt': {
      const { checkBridge } = await import('./bridges/bridges.ts')
      return checkBridge(config, stop)
    }
    case 'amqp': {
      const { checkAmqpBridge } = await import('./amqp/amqp.ts')
      return checkAmqpBridge(config, stop)
    }
    case 'jetstream': {
      const { checkJetStream } = await import('./jetstream/jetstream-check.ts')
      return checkJetStream(config, stop)
    }
    default:
      return assertNever(config)
  }
}

/** What a broker of MQTT can do, for the draft of a bridge; null where none of the versions is accepted. */
export async function brokerAbilities(
  ...asked: Parameters<typeof abilitiesOf>
): ReturnType<typeof abilitiesOf> {
  const bridges = await import('./bridges/bridges.ts')
  return bridges.abilitiesOf(...asked)
}

/** A message source that takes other credentials for its next connection. */
export type BridgeEntry = SourceEntry & { renew(options: AnyBridgeOptions): void }

export async function openBridge(
  deps: { clock: Clock; emit: Emit; random: () => number },
  options: AnyBridgeOptions,
): Promise<BridgeEntry> {
  const { silentAfterMs, unheardAfterMs } = options
  const silence = { silentAfterMs, unheardAfterMs }
  switch (options.kind) {
    case 'mqtt': {
      const { createMqttBridge } = await import('./bridges/bridges.ts')
      const source = createMqttBridge(deps, options)
      return { source, ...silence, renew: (next) => next.kind === 'mqtt' && source.renew(next) }
    }
    case 'amqp': {
      const { createAmqpBridge } = await import('./amqp/amqp.ts')
      const source = createAmqpBridge(deps, options)
      return { source, ...silence, renew: (next) => next.kind === 'amqp' && source.renew(next) }
    }
    case 'jetstream': {
      const { createJetStreamBridge } = await import('./jetstream/jetstream.ts')
      const source = createJetStreamBridge(deps, options)
      return { source, ...silence, renew: (next) => next.kind === 'jetstream' && source.renew(next) }
    }
    default:
      return assertNever(options)
  }
}
