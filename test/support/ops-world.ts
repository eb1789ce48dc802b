// ops-world.ts: ops with a clock that is moved by hand, a log that is read line by line, and stages whose
// counters a test sets. The stages have the types of the real stages, so the compiler reports differences.

import { silenceSchema } from '../../src/ops/silence-config.ts'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { keptStoreNames, type KeptStore } from '../../src/domain/kept-store.ts'
import { Writable } from 'node:stream'
import { Agent, fetch as fetchBy } from 'undici'
import { systemClock, type Clock } from '../../src/std/clock.ts'
import type { State } from '../../src/domain/condition-state.ts'
import type { LaneId, ProviderName } from '../../src/domain/ids.ts'
import type { DeliveryCounters, ProviderView } from '../../src/delivery/types.ts'
import type { IngestCounters } from '../../src/ingest/ingest.ts'
import type { OpsConfig } from '../../src/ops/config.ts'
import { createOps, type Ops, type OpsOptions } from '../../src/ops/ops.ts'
import type { DaemonControl, StageViews } from '../../src/ops/types.ts'
import type { LaneView, SpoolTotals } from '../../src/spool/spool.ts'

export type HandClock = Clock & { move(ms: number): void }

export function handClock(): HandClock {
  let passedMs = 0
  const timers = new Set<{ dueMs: number; fire: () => void }>()
  return {
    now: () => 1_750_000_000_000 + passedMs,
    monotonic: () => passedMs,
    after(delayMs, fire) {
      const timer = { dueMs: passedMs + delayMs, fire }
      timers.add(timer)
      return () => void timers.delete(timer)
    },
    move(ms) {
      const endMs = passedMs + ms
      for (;;) {
        const [next] = [...timers].filter(({ dueMs }) => dueMs <= endMs).sort((a, b) => a.dueMs - b.dueMs)
        if (!next) break
        passedMs = Math.max(passedMs, next.dueMs)
        timers.delete(next)
        next.fire()
      }
      passedMs = endMs
    },
  }
}

export type LogLine = { level: string; event: string; msg: string; time: string } & Record<string, unknown>

/** A stdout that keeps what is written to it. */
export function keptOutput(): { stream: Writable; text(): string; lines(): LogLine[] } {
  let text = ''
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString('utf8')
      done()
    },
  })
  const lines = () =>
    text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as LogLine)
  return { stream, text: () => text, lines }
}

export function ingestCounters(more: Partial<IngestCounters> = {}): IngestCounters {
  return {
    received: 0,
    lastMessageAt: null,
    lastOfClientsAt: null,
    acked: 0,
    duplicates: 0,
    resent: 0,
    resendsStored: 0,
    identifiersForgotten: 0,
    takeOvers: 0,
    retained: 0,
    protocolUses: [],
    willsDelayed: 0,
    willsTakenEarly: 0,
    payloadFormatMismatches: 0,
    propertiesSkipped: 0,
    refusedMessages: new Map(),
    refusedByIdentity: [],
    subscriptions: 0,
    subscriptionsRefused: 0,
    rebirthsRequested: 0,
    rebirthsLimited: 0,
    rebirthsUnreachable: 0,
    passwordsComputed: 0,
    passwordsRemembered: 0,
    passwordsWaiting: 0,
    refusalsDelayed: 0,
    authFailures: { failures: 0, addresses: [], users: [] },
    sessions: 0,
    sessionsEvicted: 0,
    sessionsExpired: 0,
    mapped: 0,
    dead: 0,
    ignored: 0,
    dropped: 0,
    returned: 0,
    held: 0,
    quarantined: 0,
    split: 0,
    openParts: 0,
    carried: 0,
    connections: 0,
    unauthenticated: 0,
    pausesByLimit: new Map(),
    partialBytes: 0,
    bytes: 0,
    ignoredByReason: [],
    deadByReason: [],
    quarantinedByReason: [],
    refusedByReason: new Map(),
    droppedByReason: new Map(),
    ...more,
  }
}

function perStore<Value>(value: Value): Record<KeptStore, Value> {
  return Object.fromEntries(keptStoreNames.map((name) => [name, value])) as Record<KeptStore, Value>
}

export function spoolTotals(more: Partial<SpoolTotals> = {}): SpoolTotals {
  return {
    evicted: perStore(0),
    stores: perStore({ bytes: 0, bytesMax: 1, onFull: 'hold' as const, devices: 0, clients: 0 }),
    payloads: 0,
    ackWaitMs: 0,
    duplicates: 0,
    delivered: 0,
    retried: 0,
    dead: 0,
    returned: 0,
    damaged: 0,
    kept: 0,
    taken: 0,
    exchanged: 0,
    movedBack: 0,
    lateMoved: 0,
    recordsMissing: 0,
    openBytes: 0,
    heldBatches: 0,
    heldPayloads: 0,
    deadLetters: 0,
    deadLetterBytes: 0,
    quarantined: 0,
    quarantineBytes: 0,
    deferred: 0,
    deferredBytes: 0,
    receipts: 0,
    receiptBytes: 0,
    receiptsDropped: 0,
    receiptsReread: 0,
    stateEntries: 0,
    stateBytes: 0,
    groups: 0,
    windowIds: 0,
    bytesMax: 1000,
    reserveBytes: 0,
    diskBytes: 0,
    freeBytes: null,
    freeBytesMin: 0,
    ...more,
  }
}

export function lane(id: number, more: Partial<LaneView> = {}): LaneView {
  return {
    id: id as LaneId,
    provider: 'default' as ProviderName,
    role: { kind: 'live' },
    openedAt: 1_750_000_000_000,
    pending: 0,
    pendingBytes: 0,
    sealed: 0,
    sealedBytes: 0,
    heldBatches: 0,
    heldPayloads: 0,
    heldBytes: 0,
    oldestAt: null,
    oldestSealedAt: null,
    lowSeq: 0,
    lowSeqBeside: () => 0,
    sealSeq: 0,
    committedSeq: 0,
    appended: 0,
    settled: 0,
    open: 0,
    ...more,
  }
}

export function provider(name: string, more: Partial<ProviderView> = {}): ProviderView {
  return {
    name: name as ProviderName,
    endpoint: 'available',
    since: 1_750_000_000_000,
    lastRequestId: null,
    lastAcceptedAt: null,
    clockOffsetMs: null,
    nextAttemptAt: null,
    inFlight: 0,
    settling: 0,
    ratePerS: 0,
    ...more,
  }
}

export function deliveryCounters(more: Partial<DeliveryCounters> = {}): DeliveryCounters {
  return {
    submissions: 0,
    outcomes: new Map(),
    delivered: 0,
    retried: 0,
    dead: 0,
    discarded: 0,
    bytesSent: 0,
    senderThreadsLost: 0,
    ...more,
  }
}

/** Stages whose views are the given values. */
export function stages(view: {
  ingest?: IngestCounters
  lanes?: readonly LaneView[]
  totals?: SpoolTotals
  providers?: readonly ProviderView[]
  delivery?: DeliveryCounters
  /** What is wrong now. */
  states?: readonly State[]
}): StageViews {
  return {
    ingest: { counters: () => view.ingest ?? ingestCounters(), addresses: () => ['mqtt://127.0.0.1:1883'] },
    spool: {
      holdReason: () => null,
      congested: () => false,
      deadLettersFull: () => false,
      lanes: () => view.lanes ?? [],
      totals: () => view.totals ?? spoolTotals(),
    },
    delivery: {
      providers: () => view.providers ?? [],
      counters: () => view.delivery ?? deliveryCounters(),
      states: () => view.states ?? [],
    },
  }
}

export function opsConfig(listen = { host: '127.0.0.1', port: 0 }, more: Partial<OpsConfig> = {}): OpsConfig {
  const silence = silenceSchema.parse(undefined)
  const defaults = {
    allowed_hosts: [],
    users: [],
    login: { idle: 7_200_000, max_age: 43_200_000, secure_cookie: false },
    audit_max_bytes: 1024 ** 2,
    devices: { max: 1000, retention: 86_400_000, messages_max_bytes: 1024 ** 2 },
    stop_deadline: 30_000,
    silence,
  }
  return { listen, ...defaults, ...more }
}

export type OpsWorld = {
  ops: Ops
  clock: HandClock
  output: ReturnType<typeof keptOutput>
  /** The directory of the spool: control socket and audit log. */
  folder: string
} & AsyncDisposable

export function opsWorld(
  options: Partial<OpsOptions> & { level?: OpsOptions['log']['level']; env?: NodeJS.ProcessEnv } = {},
): OpsWorld {
  const clock = handClock()
  const output = keptOutput()
  const { level = 'debug', env = {}, ...more } = options
  const folder = more.spoolPath ?? mkdtempSync(join(tmpdir(), 'gateway-test-'))
  const ops = createOps(
    { clock, version: '1.2.3', stdout: output.stream, env },
    { ops: opsConfig(), log: { level }, spoolPath: folder, ...more },
  )
  const dispose = async () => {
    await ops.stop()
    if (more.spoolPath === undefined) rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
  }
  return { ops, clock, output, folder, [Symbol.asyncDispose]: dispose }
}

/** Ops that listen, with what most tests ask of them. */
export async function startedOps(options: Parameters<typeof opsWorld>[0] = {}) {
  const world = opsWorld(options)
  await world.ops.start()
  const ask = (path: string, init?: RequestInit) => get(world.ops.url(), path, init)
  return {
    ...world,
    url: world.ops.url() ?? '',
    ask,
    json: async (path: string) => JSON.parse((await ask(path)).text) as Record<string, unknown>,
    metrics: async () => (await ask('/metrics')).text,
    /** On the control socket. */
    post: (path: string, init: RequestInit = {}) =>
      get(world.ops.control(), path, { method: 'POST', ...init }),
  }
}

/** Control in which every change that is not given is an error of the test. */
export function daemonControl(changes: Partial<DaemonControl> = {}): DaemonControl {
  const fail = () => Promise.reject(new Error('unexpected call'))
  return {
    reload: fail,
    remap: fail,
    now: systemClock.now,
    mute: async () => 0,
    kick: () => 0,
    accept: fail,
    snapshotsFolder: '/var/lib/gateway/snapshots',
    forget: fail,
    check: fail,
    probe: fail,
    ...changes,
  }
}

/** `url` may be `unix:` with the path of a socket. */
export async function send(url: string | null, path: string, init: RequestInit = {}) {
  if (!url?.startsWith('unix:')) return fetch(`${url}${path}`, init)
  const dispatcher = new Agent({ connect: { socketPath: url.slice('unix:'.length) } })
  const sent = { ...init, dispatcher } as Parameters<typeof fetchBy>[1]
  return (await fetchBy(`http://localhost${path}`, sent)) as unknown as Response
}

export async function get(url: string | null, path: string, init?: RequestInit) {
  const response = await send(url, path, init)
  return { status: response.status, headers: response.headers, text: await response.text() }
}
