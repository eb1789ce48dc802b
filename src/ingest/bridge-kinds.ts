// bridge-kinds.ts: what `ingest.bridges[]` may name. The scheme of `url` chooses the kind and its options:
//
//   mqtt mqtts ws wss    a broker of MQTT     bridges/
//   amqp amqps           RabbitMQ             amqp/
//   nats nats+tls        NATS JetStream       jetstream/
//
// Each kind is a row of `kinds`. Outside of its folder a bridge is known by what all kinds have: name, kind,
// `topics` as filters of MQTT, user name, password and certificate. The clients, which take 3 MB, are loaded
// for a bridge that needs them.

import { z } from 'zod'
import type { Clock } from '../std/clock.ts'
import type { Emit } from '../domain/event.ts'
import { embeddedBrokerName } from '../domain/message.ts'
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
import type { MessageSource, SourceEntry } from './message-sources/message-sources.ts'
import type { BridgeKind } from './message-sources/types.ts'

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

type Options = { mqtt: BridgeOptions; amqp: AmqpOptions; jetstream: JetStreamOptions }

export type AnyBridgeOptions = Options[BridgeKind]

type BridgeDeps = { clock: Clock; emit: Emit; random: () => number }

/** What the rest of the gateway asks of a kind. */
type Kind<Config, Opts> = {
  options(this: void, config: Config): Opts
  /** What a valid bridge allows and a person should know. */
  warnings(this: void, config: Config, isLoopback: (host: string) => boolean): BridgeWarning[]
  /** The addresses as a person writes them, without user and password. */
  address(this: void, config: Config): string
  /** Tries it for `check --connect`; takes no message. */
  check(this: void, config: Config, stop: AbortSignal): Promise<BridgeFinding>
  /** `renew`: takes other credentials for its next connection. */
  open(this: void, deps: BridgeDeps, options: Opts): Promise<MessageSource & { renew(options: Opts): void }>
}

const kinds: {
  [Each in BridgeKind]: Kind<Extract<AnyBridgeConfig, { kind: Each }>, Options[Each]>
} = {
  mqtt: {
    options: bridgeOptions,
    warnings: bridgeWarnings,
    address: ({ url }) => urlText(url),
    check: async (...asked) => (await import('./bridges/bridges.ts')).checkBridge(...asked),
    open: async (...given) => (await import('./bridges/bridges.ts')).createMqttBridge(...given),
  },
  amqp: {
    options: amqpOptions,
    warnings: amqpWarnings,
    address: ({ url }) => nodesText(url),
    check: async (...asked) => (await import('./amqp/amqp.ts')).checkAmqpBridge(...asked),
    open: async (...given) => (await import('./amqp/amqp.ts')).createAmqpBridge(...given),
  },
  jetstream: {
    options: jetstreamOptions,
    warnings: jetstreamWarnings,
    address: (config) => urlsText(jetstreamOptions(config)),
    check: async (...asked) => (await import('./jetstream/jetstream-check.ts')).checkJetStream(...asked),
    open: async (...given) => (await import('./jetstream/jetstream.ts')).createJetStreamBridge(...given),
  },
}

/** The row of a config or of its options. The compiler does not see that both have the same kind. */
function kindOf({ kind }: { kind: BridgeKind }): Kind<AnyBridgeConfig, AnyBridgeOptions> {
  return kinds[kind]
}

export const anyBridgeOptions = (config: AnyBridgeConfig) => kindOf(config).options(config)

export const anyBridgeWarnings = (config: AnyBridgeConfig, isLoopback: (host: string) => boolean) =>
  kindOf(config).warnings(config, isLoopback)

export const addressText = (config: AnyBridgeConfig) => kindOf(config).address(config)

export const checkAnyBridge = async (config: AnyBridgeConfig, stop: AbortSignal) =>
  kindOf(config).check(config, stop)

/** What a broker of MQTT can do, for the draft of a bridge; null where none of the versions is accepted. */
export async function brokerAbilities(
  ...asked: Parameters<typeof abilitiesOf>
): ReturnType<typeof abilitiesOf> {
  const bridges = await import('./bridges/bridges.ts')
  return bridges.abilitiesOf(...asked)
}

/** A message source that takes other credentials for its next connection. */
export type BridgeEntry = SourceEntry & { renew(options: AnyBridgeOptions): void }

export async function openBridge(deps: BridgeDeps, options: AnyBridgeOptions): Promise<BridgeEntry> {
  const { silentAfterMs, unheardAfterMs, kind } = options
  const source = await kindOf(options).open(deps, options)
  // Another kind needs a restart.
  const renew = (next: AnyBridgeOptions) => void (next.kind === kind && source.renew(next))
  return { source, silentAfterMs, unheardAfterMs, renew }
}
