// sandbox-pipeline.ts: delivery between a spool in LevelDB and the sandbox, which verifies every signature.
// Real time; the clock of delivery may be wrong.

import { randomUUID } from 'node:crypto'
import { onTestFinished } from 'vitest'
import { createDelivery } from '../../src/delivery/delivery.ts'
import type { Delivery } from '../../src/delivery/delivery.ts'
import { defaultBackoff } from '../../src/delivery/delivery-options.ts'
import type { ProviderOptions } from '../../src/delivery/delivery-options.ts'
import type { GatewayEvent } from '../../src/domain/event.ts'
import type { ProviderName } from '../../src/domain/ids.ts'
import { createSandbox, sandboxAccount } from '../../src/sandbox/sandbox.ts'
import type { Sandbox, SandboxOptions } from '../../src/sandbox/sandbox.ts'
import { openSpool } from '../../src/spool/spool.ts'
import type { Spool } from '../../src/spool/spool.ts'
import { systemClock } from '../../src/std/clock.ts'
import type { Clock } from '../../src/std/clock.ts'
import { openLevelStore, realDisk } from '../../src/storage/storage.ts'
import { providerOptions } from './delivery-world.ts'
import { newFolder } from './folders.ts'
import { payloadNamed, smallOptions } from './spool-world.ts'

type Options = {
  sandbox?: Partial<SandboxOptions>
  clock?: Clock
  env?: NodeJS.ProcessEnv
  /** The options of each; default: one provider, `default`. */
  providers?: readonly (Partial<Omit<ProviderOptions, 'name'>> & { name?: string })[]
  /** Base URL of another service, made of the sandbox's. */
  baseUrl?: (sandboxUrl: string) => string
}

export type SandboxPipeline = {
  sandbox: Sandbox
  spool: Spool
  delivery: Delivery
  events: GatewayEvent[]
  /** Resolves when they are durable. */
  publish(count: number, options?: { provider?: string; from?: number }): Promise<void>
  /** Waits until it holds; the test's own timeout bounds it. */
  until(holds: () => boolean): Promise<void>
  ofKind<Kind extends GatewayEvent['kind']>(kind: Kind): Extract<GatewayEvent, { kind: Kind }>[]
  /** Devices that arrived, with the provider key of their requests. */
  arrived(): Map<string, string | null>
}

export const shortBackoff = { ...defaultBackoff, minMs: 5, maxMs: 40 }

export async function openSandboxPipeline(options: Options = {}): Promise<SandboxPipeline> {
  const { clock = systemClock, env = {}, providers = [{}], baseUrl = (url: string) => url } = options
  const events: GatewayEvent[] = []
  const emit = (event: GatewayEvent) => void events.push(event)
  const random = Math.random
  const sandbox = createSandbox(
    { clock: systemClock, newId: randomUUID, random },
    { accounts: [sandboxAccount], ...options.sandbox },
  )
  const { url } = await sandbox.listen({ host: '127.0.0.1', port: 0 })
  const spool = await openSpool(
    { clock, newId: randomUUID, random, emit, openStore: openLevelStore, disk: realDisk },
    smallOptions(await newFolder(), {
      bytesMax: 64 * 1024 ** 2,
      group: { chunkPayloadsMax: 50, chunkBytesMax: 64 * 1024 },
    }),
  )
  const delivery = createDelivery(
    { spool, clock, random, emit, env },
    { providers: providers.map((own) => optionsFor(baseUrl(url), own)), maxInFlightTotal: 64 },
  )
  onTestFinished(async () => {
    await delivery.stop(AbortSignal.abort())
    await spool.close()
    await sandbox.close()
  })
  delivery.start()
  return {
    sandbox,
    spool,
    delivery,
    events,
    async publish(count, { provider = 'default', from = 0 } = {}) {
      for (let index = from; index < from + count; index += 1) {
        const named = payloadNamed(`${provider}-${index}`, { provider })
        const json = named.json.replace('"note":""', '"gps":{"latitude":60.1,"longitude":24.9}')
        spool.append({ ...named, json })
      }
      await new Promise<void>((resolve, reject) => {
        spool.endMessage((fault) => (fault ? reject(fault) : resolve()))
      })
    },
    async until(holds) {
      while (!holds())
        await new Promise<void>((resolve) => {
          setTimeout(resolve, 5)
        })
    },
    ofKind: <Kind extends GatewayEvent['kind']>(kind: Kind) =>
      events.filter((event): event is Extract<GatewayEvent, { kind: Kind }> => event.kind === kind),
    arrived() {
      const found = new Map<string, string | null>()
      for (const { payload, provider } of sandbox.received({ limit: 10_000 })) {
        const { id } = Object(payload['deviceIdentifier']) as { id?: string }
        found.set(String(id), provider)
      }
      return found
    },
  }
}

function optionsFor(baseUrl: string, own: NonNullable<Options['providers']>[number]): ProviderOptions {
  const { accessKeyId, secret } = sandboxAccount
  const { name = 'default', ...changes } = own
  return providerOptions(baseUrl, {
    name: name as ProviderName,
    credentials: { source: 'keys', accessKeyId, secretAccessKey: secret, sessionToken: null },
    batch: { payloadsMax: 50, bodyBytesMax: 1024 ** 2, lingerMs: 20 },
    timeoutMs: 2000,
    backoff: shortBackoff,
    ...changes,
  })
}
