// delivery-world.ts: delivery between a real spool (on a memory store) and a scripted service, with a clock that the test
// moves. Usually nothing but the clock takes time; with `sockets` requests are signed and sent over real sockets.

import { Secret } from '../../src/std/secret.ts'
import { createDelivery } from '../../src/delivery/delivery.ts'
import type { Delivery } from '../../src/delivery/delivery.ts'
import { defaultBackoff } from '../../src/delivery/delivery-options.ts'
import type { ProviderOptions } from '../../src/delivery/delivery-options.ts'
import type { GatewayEvent } from '../../src/domain/event.ts'
import type { State, StateCode } from '../../src/domain/condition-state.ts'
import { presentOf } from '../../src/ops/conditions/causes.ts'
import { createConditions, type Condition } from '../../src/ops/conditions/conditions.ts'
import { defaultProvider } from '../../src/domain/ids.ts'
import type { PayloadId, ProviderName } from '../../src/domain/ids.ts'
import { openSpool } from '../../src/spool/spool.ts'
import type { Spool, SpoolOptions } from '../../src/spool/spool.ts'
import { createFakeClock, turn } from './fake-clock.ts'
import type { FakeClock } from './fake-clock.ts'
import { createMemoryDisk } from './memory-store.ts'
import type { MemoryDisk } from './memory-store.ts'
import { createRandom } from './random.ts'
import { sharedSender } from './shared-sender.ts'
import { createScriptedSender } from './scripted-sender.ts'
import type { ScriptedSender } from './scripted-sender.ts'
import { startScriptedService } from './scripted-service.ts'
import type { Script, ScriptedService } from './scripted-service.ts'
import { emptyDisk, payloadNamed, smallOptions } from './spool-world.ts'

export function providerOptions(baseUrl: string, changes: Partial<ProviderOptions> = {}): ProviderOptions {
  return {
    name: defaultProvider,
    baseUrl,
    providerKey: null,
    credentials: {
      source: 'keys',
      accessKeyId: 'AKIDEXAMPLE',
      secretAccessKey: new Secret('a-secret-that-nobody-sees'),
      sessionToken: null,
    },
    batch: { payloadsMax: 3, bodyBytesMax: 64 * 1024, lingerMs: 1000 },
    maxInFlight: 4,
    timeoutMs: 5000,
    connectTimeoutMs: 2000,
    compress: 'off',
    ca: null,
    clientCertificate: null,
    proxy: { from: 'none' },
    retryRules: new Map([
      ['Validation', [300_000, 3_600_000]],
      ['default', [10_000, 60_000]],
    ]),
    onRepeat: 'hold',
    onRefusedRepeat: 'hold',
    mode: 'batch',
    backfill: {
      afterMs: 900_000,
      shareMin: 0.1,
      shareMax: 1,
      order: 'oldest-first',
      rotateEveryMs: 3_600_000,
    },
    rate: { payloadsPerS: null, requestsPerS: null },
    backoff: defaultBackoff,
    ...changes,
  }
}

export type DeliveryWorld = {
  clock: FakeClock
  disk: MemoryDisk
  spool: Spool
  service: ScriptedService
  delivery: Delivery
  events: GatewayEvent[]
  /** Appends payloads and resolves when they are durable. */
  publish(...names: readonly string[]): Promise<readonly PayloadId[]>
  publishFor(provider: string, ...names: readonly string[]): Promise<readonly PayloadId[]>
  /** Resolves when all work that needs no clock is done. */
  quiet(): Promise<void>
  /** Moves time, letting each timer's work end before the next. */
  pass(ms: number): Promise<void>
  ofKind<K extends GatewayEvent['kind']>(kind: K): Extract<GatewayEvent, { kind: K }>[]
  /** Of a code, that hold now. */
  states<Code extends StateCode>(code: Code): Extract<State, { code: Code }>[]
  /** The conditions of the states, worst first. */
  conditions(): readonly Condition[]
  codes(): readonly string[]
  /** How often a condition was raised and cleared, as a look each second sees it. */
  changes(code: StateCode): { raised: number; cleared: number }
  /** Starts another delivery and spool on the same disk, as after a crash of the process. */
  crash(provider?: Partial<ProviderOptions>): Promise<void>
  end(): Promise<void>
}

type WorldOptions = {
  script?: Script
  provider?: Partial<ProviderOptions>
  /** Several providers; each has its name as its key. */
  providers?: readonly string[]
  maxInFlightTotal?: number
  spool?: Partial<SpoolOptions>
  seed?: number
  startNow?: boolean
  /** Settles write receipts. */
  ledger?: boolean
  /** Real signatures, a real thread and real sockets instead of scripted-sender.ts. */
  sockets?: boolean
  /** Of the link to the service, without sockets. */
  bytesPerS?: number
}

export async function createDeliveryWorld(options: WorldOptions = {}): Promise<DeliveryWorld> {
  const clock = createFakeClock()
  const disk = createMemoryDisk()
  const { senderWorker, service } = options.sockets
    ? await socketSender(options.script)
    : createScriptedSender({ clock }, options.script, options)
  const chance = createRandom(options.seed ?? 1)
  const random = () => chance.next()
  const events: GatewayEvent[] = []
  const emit = (event: GatewayEvent) => void events.push(event)
  let ids = 0
  const said: string[] = []
  const register = createConditions({
    clock,
    emit: (event) => void ('code' in event && said.push(`${event.kind} ${event.code}`)),
  })
  let lookedMs = 0
  const look = () => {
    lookedMs = clock.monotonic()
    register.look([...world.delivery.states()].map(presentOf))
  }
  const newId = () => `00000000-0000-4000-8000-${String(++ids).padStart(12, '0')}`

  const open = () =>
    openSpool(
      { clock, newId, random, emit, openStore: disk.boot(), disk: emptyDisk },
      smallOptions('/memory', { diskCheckMs: 1e12, forgetMs: 1e12, ...options.spool }),
    )
  const deliver = (spool: Spool, changes = options.provider) =>
    createDelivery(
      { spool, clock, random, emit, env: {}, senderWorker },
      {
        providers: (options.providers ?? [null]).map((name) =>
          providerOptions(service.url, {
            ...changes,
            ...(name === null ? {} : { name: name as ProviderName, providerKey: name }),
          }),
        ),
        maxInFlightTotal: options.maxInFlightTotal ?? 64,
        ...(options.ledger === true ? { ledger: true } : {}),
      },
    )

  const spool = await open()
  const world: DeliveryWorld = {
    clock,
    disk,
    spool,
    service,
    delivery: deliver(spool),
    events,
    publish: (...names) => world.publishFor(defaultProvider, ...names),
    async publishFor(provider, ...names) {
      const payloads = names.map((name) => payloadNamed(name, { provider }))
      await new Promise<void>((resolve, reject) => {
        for (const payload of payloads) world.spool.append(payload)
        world.spool.endMessage((fault) => (fault === null ? resolve() : reject(fault)))
      })
      return payloads.map(({ payloadId }) => payloadId)
    },
    async quiet() {
      for (let calm = 0; calm < 4;) {
        await turn()
        let working = 0
        for (const { inFlight, settling } of world.delivery.providers()) working += inFlight + settling
        calm = working <= service.hanging() ? calm + 1 : 0
      }
    },
    async pass(ms) {
      const untilMs = clock.monotonic() + ms
      for (;;) {
        await world.quiet()
        if (clock.monotonic() - lookedMs >= 1000) look()
        const nextMs = clock.nextIn()
        const restMs = untilMs - clock.monotonic()
        if (nextMs === null || nextMs > restMs) {
          await clock.advance(restMs)
          return world.quiet()
        }
        await clock.advance(nextMs)
      }
    },
    ofKind: <K extends GatewayEvent['kind']>(kind: K) =>
      events.filter((event): event is Extract<GatewayEvent, { kind: K }> => event.kind === kind),
    states: <Code extends StateCode>(code: Code) =>
      [...world.delivery.states()].filter(
        (state): state is Extract<State, { code: Code }> => state.code === code,
      ),
    conditions() {
      look()
      return register.open()
    },
    codes: () => world.conditions().map(({ code }) => code),
    changes(code) {
      look()
      const times = (kind: string) => said.filter((one) => one === `${kind} ${code}`).length
      return { raised: times('condition_raised'), cleared: times('condition_cleared') }
    },
    async crash(provider) {
      const old = world.delivery
      disk.crash({ keepRunning: true })
      await old.stop(AbortSignal.abort())
      world.spool = await open()
      world.delivery = deliver(world.spool, { ...options.provider, ...provider })
      world.delivery.start()
    },
    async end() {
      await world.delivery.stop(AbortSignal.abort())
      await service.close()
    },
  }
  if (options.startNow !== false) world.delivery.start()
  return world
}

async function socketSender(script: Script | undefined): Promise<ScriptedSender> {
  return { senderWorker: sharedSender, service: await startScriptedService(script) }
}
