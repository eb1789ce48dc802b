// pipeline-world.ts: the whole pipeline inside a test: devices, the real gateway with a real config file, and
// the sandbox.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { startGateway, type Gateway, type GatewayDeps } from '../../src/app/app.ts'
import { loadConfig } from '../../src/config/config.ts'
import type { GatewayEvent } from '../../src/domain/event.ts'
import { newRandomId } from '../../src/domain/ids.ts'
import {
  createSandbox,
  sandboxAccount,
  type Sandbox,
  type SandboxOptions,
} from '../../src/sandbox/sandbox.ts'
import { systemClock, type Clock } from '../../src/std/clock.ts'
import { openLevelStore, realDisk } from '../../src/storage/storage.ts'
import { odometerSource } from './config-text.ts'
import { newFolder } from './folders.ts'
import { createDevice, type Device } from './mqtt-device.ts'
import { testKernel } from './our-time.ts'
import { keptOutput } from './ops-world.ts'
import { sharedSender } from './shared-sender.ts'

export type PipelineOptions = {
  /** YAML of sections; each replaces the usual one. The sources are always those of an odometer. */
  sections?: Partial<Record<'spool' | 'delivery' | 'ops' | 'log' | 'defaults', string>>
  /** Of `ingest.ack_delay_max`; without it no message waits for others. */
  ackDelay?: string
  /** The whole config instead, for the service at this base URL. */
  config?: (baseUrl: string) => string
  sandbox?: Partial<SandboxOptions>
  /** Base URL of another service than the sandbox. */
  baseUrl?: string
  folder?: string
  /** Of the gateway and of the service. */
  clock?: Clock
  deps?: Partial<GatewayDeps>
  /** Takes what must be called when it is no longer used; the last one first. Default: when the test ends. */
  atEnd?: (end: () => Promise<void>) => void
}

export type Pipeline = {
  gateway: Gateway
  sandbox: Sandbox
  folder: string
  /** Of the service. */
  baseUrl: string
  events: GatewayEvent[]
  log: () => string
  /** A connected device; `telemetry/v1/<clientId>` is its topic. */
  device(clientId: string): Promise<Device>
  /** Publishes messages on the topic of a device, which stays connected, and waits until all are acknowledged. */
  publish(clientId: string, ...payloads: readonly string[]): Promise<void>
  status(): ReturnType<Gateway['status']>
  /** Codes of the open conditions. */
  codes(): string[]
  condition(code: string): ReturnType<Gateway['status']>['conditions'][number] | undefined
  /** Waits until `holds`, checked after every event and ack; the timeout of the test bounds it. */
  until(holds: () => boolean): Promise<void>
}

/** A sandbox on a port of its own, closed when the test ends, or when `atEnd` says. */
export async function startSandbox(
  options: Partial<SandboxOptions> = {},
  clock = systemClock,
  atEnd: PipelineOptions['atEnd'] = onTestFinished,
): Promise<{ sandbox: Sandbox; url: string }> {
  const sandbox = createSandbox(
    { clock, newId: newRandomId, random: Math.random },
    { accounts: [sandboxAccount], ...options },
  )
  const { url } = await sandbox.listen({ host: '127.0.0.1', port: 0 })
  atEnd(() => sandbox.close())
  return { sandbox, url }
}

export async function startPipeline(options: PipelineOptions = {}): Promise<Pipeline> {
  const { atEnd = onTestFinished } = options
  const { sandbox, url } = await startSandbox(options.sandbox, options.clock, atEnd)
  const folder = options.folder ?? (await newFolder(atEnd))
  const path = join(folder, 'gateway.yaml')
  const baseUrl = options.baseUrl ?? url
  await writeFile(
    path,
    options.config?.(baseUrl) ?? configText(baseUrl, options.sections ?? {}, options.ackDelay),
  )
  const events: GatewayEvent[] = []
  const output = keptOutput()
  const waiters = new Set<() => void>()
  const env = {
    AWS_ACCESS_KEY_ID: sandboxAccount.accessKeyId,
    AWS_SECRET_ACCESS_KEY: sandboxAccount.secret.reveal(),
  }
  const { config, files } = await loadConfig(path, { env: options.deps?.env ?? env })
  const gateway = await startGateway(
    {
      clock: options.clock ?? systemClock,
      kernel: testKernel(),
      random: Math.random,
      newId: newRandomId,
      env,
      stdout: output.stream,
      version: '0.0.0-test',
      openStore: openLevelStore,
      disk: realDisk,
      senderWorker: sharedSender,
      configFiles: files,
      observe(event) {
        events.push(event)
        for (const wake of waiters) wake()
      },
      ...options.deps,
    },
    config,
    path,
  )
  atEnd(() => gateway.stop('the test ended'))
  async function connected(clientId: string): Promise<Device> {
    const port = Number(new URL(gateway.addresses.mqtt[0] ?? '').port)
    const device = await createDevice({ port, clientId })
    onTestFinished(() => device.destroy())
    await device.connect()
    return device
  }
  return {
    gateway,
    sandbox,
    folder,
    baseUrl,
    events,
    log: output.text,
    device: connected,
    async publish(clientId, ...payloads) {
      const device = await connected(clientId)
      for (const [index, payload] of payloads.entries())
        device.publish({ topic: topicOf(clientId), payload, messageId: index + 1 })
      await device.acked(payloads.length)
    },
    status: () => gateway.status(),
    codes: () => gateway.status().conditions.map(({ code }) => code),
    condition: (wanted) => gateway.status().conditions.find(({ code }) => code === wanted),
    async until(holds) {
      while (!holds()) {
        await new Promise<void>((resolve) => {
          const wake = () => {
            clearTimeout(timer)
            waiters.delete(wake)
            // Events of one turn are looked at together: a status takes half a millisecond.
            setImmediate(resolve)
          }
          // Counters also change without an event, so `holds` is called again soon.
          const timer = setTimeout(wake, 20)
          waiters.add(wake)
        })
      }
    },
  }
}

function configText(
  baseUrl: string,
  sections: NonNullable<PipelineOptions['sections']>,
  ackDelay = '0s',
): string {
  return [
    `ingest: { ack_delay_max: ${ackDelay}, broker: { listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true }, limits: { max_messages_per_s: 1000000 } } }`,
    `sources: ${odometerSource}`,
    `defaults: ${sections.defaults ?? '{ carrier: ACME, operator: OP1, asset_type: TRACTOR }'}`,
    `spool: ${sections.spool ?? '{ path: ./spool, allow_in_memory: true, max_bytes: 32MiB, min_free_bytes: 1MiB }'}`,
    `delivery: { base_url: "${baseUrl}", ${sections.delivery ?? 'batch: { linger: 20ms }'} }`,
    `ops: ${sections.ops ?? '{ listen: "127.0.0.1:0", stop_deadline: 5s }'}`,
    `log: ${sections.log ?? '{ level: debug }'}`,
  ].join('\n')
}

/** Not long ago, so that no message of a test is too old or from the future; by no whole hours. */
export const startMs = Date.now() - 6_300_000

/** A message of a device, distinct by `n`. */
export function messageOf(n: number, more: Record<string, unknown> = {}): string {
  const ts = startMs + n
  return JSON.stringify({ ts, lat: 52.5 + (n % 1000) / 10_000, lon: 13.4, odometer: 1000 + n / 8, ...more })
}

export function topicOf(clientId: string): string {
  return `telemetry/v1/${clientId}`
}

/**
 * Resolves when the gateway has read everything that the device sent before, because it answers PINGREQ in
 * order. Messages without an ack by then are held.
 */
export async function roundTrip(device: Device): Promise<void> {
  const answered = () => device.received.filter(({ cmd }) => cmd === 'pingresp').length
  const before = answered()
  device.send({ cmd: 'pingreq' })
  await device.until(() => answered() > before)
}
