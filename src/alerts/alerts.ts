// alerts.ts: alerts that the daemon sends itself, for depots without a monitoring system. Entry file of this
// folder.
//
// Promises
//   A receiver learns of every condition that lasts longer than `wait`, from its severity on, and of its end;
//   what it cannot get now, it gets when it can be reached. No receiver gets more than `max_per_hour` alerts.
//   One that hangs, floods or fails delays no other, and never the gateway. No secret is in a log, in a
//   condition or in what is shown.
//
// How
//   Once a second the conditions are compared with what each receiver knows:
//
//   conditions of ops --> verdict-condition --> alert-sender (one each) --> receivers/
//                                           '-> heartbeat (one each)   ---> a URL
//
//   receivers/      webhook, email, command
//   alert-changes   what a receiver does not know yet
//   alert-limit     how many alerts it may get
//   alert-text, alert-body   the alert in words, and as JSON
//   alert-state     what receivers know, over restarts
//
// What can go wrong, and what then happens
//   a receiver fails       back-off; after three tries the condition ALERTS_FAILING, which others are sent
//   a restart, kill -9     an alert whose outcome is not known is sent again under its id
//   alerts.json is lost    open conditions are sent once more
//   the clock is set       waits and back-offs do not notice; a repeat comes at most once too early
//   the gateway hangs      nothing is sent: that is what the heartbeat is for

import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { every, type CancelTimer, type Clock } from '../std/clock.ts'
import { messageOf } from '../std/gateway-error.ts'
import { Secret } from '../std/secret.ts'
import type { Emit } from '../domain/event.ts'
import type { Environment, ProxyOptions } from '../delivery/delivery.ts'
import { createAlertSender, type AlertSender, type SenderSettings } from './alert-sender.ts'
import { createKeptWriter, readKept } from '../std/file-system/kept-json.ts'
import { alertStateSchema, type AlertState } from './alert-state.ts'
import { testReceivers } from './alert-test.ts'
import type { AlertsConfig, HeartbeatConfig, ReceiverConfig } from './config.ts'
import { createHeartbeat, healthyVerdictsOf, type Heartbeat, type HeartbeatSettings } from './heartbeat.ts'
import {
  createHeartbeatRequest,
  createReceiver,
  heartbeatKey,
  targetKey,
  type ReceiverDeps,
} from './receivers/receivers.ts'
import { failingState } from './receiver-try.ts'
import type { AlertsStage, Situation } from './types.ts'
import { createVerdictCondition } from './verdict-condition.ts'

export { alertSchema } from './alert-body.ts'
export { checkReceivers, listReceivers, testReceivers } from './alert-test.ts'

export type AlertsDeps = {
  clock: Clock
  random: () => number
  newId: () => string
  emit: Emit
  env: Environment
  version: string
  situation: () => Situation
  /** How far our time is from the clock of the machine; null: not known. */
  clockOffsetMs: () => number | null
}

export type AlertsOptions = { alerts: AlertsConfig; proxy: ProxyOptions }

export type Alerts = {
  stage: AlertsStage
  start(): Promise<void>
  /** Puts other receivers in force. What those that stay know is kept. */
  use(options: AlertsOptions): void
  /** Ends running tries, and writes the state. Never rejects. */
  stop(): Promise<void>
}

const lookEveryMs = 1000
/** In what is about all of them. */
const everyReceiver = '(all)'
const faultAct = 'Keep the log and report it. `/status` shows the same fault.'

type SenderEntry = { config: ReceiverConfig; sender: AlertSender }
type HeartbeatEntry = { config: HeartbeatConfig; heartbeat: Heartbeat }

export function createAlerts(deps: AlertsDeps, first: AlertsOptions, spoolPath: string): Alerts {
  const { clock } = deps
  const path = join(spoolPath, 'alerts.json')
  let options = first
  let stored: AlertState = {}
  let senders = new Map<string, SenderEntry>()
  let heartbeats = new Map<string, HeartbeatEntry>()
  /** Of receivers that were removed; the stop waits for them. */
  const ending = new Set<Promise<void>>()
  let cancel: CancelTimer = () => {}
  let isStopped = false
  /** Looks in a row that found no state. */
  let faults = 0
  let fault = ''
  const withVerdict = createVerdictCondition(clock)
  const write = createKeptWriter(clock, path, () => ({ version: 1, receivers: stateOfAll() }))
  const receiverDeps = (): ReceiverDeps => receiverDepsOf(deps, options)

  return {
    stage: {
      receivers: () => working().map((one) => one.view()),
      states: () => [
        ...failingState(everyReceiver, { failures: faults, why: fault, act: faultAct }),
        ...working().flatMap((one) => one.states()),
      ],
      async test(name, signal) {
        const tests = await testReceivers(testDeps(), options, { name, signal })
        for (const { name: one, ok } of tests ?? [])
          if (ok) (senders.get(one)?.sender ?? heartbeats.get(one)?.heartbeat)?.retryNow()
        return tests
      },
    },
    start,
    use,
    stop,
  }

  function working(): (AlertSender | Heartbeat)[] {
    return [
      ...[...senders.values()].map(({ sender }) => sender),
      ...[...heartbeats.values()].map(({ heartbeat }) => heartbeat),
    ]
  }

  async function start(): Promise<void> {
    if (options.alerts.receivers.length > 0)
      stored = (await readKept(path, alertStateSchema, { version: 1, receivers: {} })).receivers
    apply()
    schedule()
  }

  function schedule(): void {
    cancel()
    if (isStopped || senders.size + heartbeats.size === 0) return
    cancel = every(clock, lookEveryMs, look)
  }

  function look(): void {
    const situation = situationNow()
    if (situation === null) return
    for (const { sender } of senders.values()) sender.look(situation)
    for (const { heartbeat } of heartbeats.values()) heartbeat.look(situation)
  }

  /** Null where a stage has a fault: then no heartbeat is sent either, and the monitor calls a person. */
  function situationNow(): Situation | null {
    try {
      const situation = withVerdict(deps.situation())
      faults = 0
      return situation
    } catch (error) {
      faults += 1
      fault = `The state cannot be read: ${messageOf(error)}`
      const about = { receiver: everyReceiver, why: fault, act: faultAct, failures: faults }
      deps.emit({ kind: 'alert_failed', ...about, retryInMs: lookEveryMs })
      return null
    }
  }

  function use(next: AlertsOptions): void {
    if (isStopped) return
    options = next
    apply()
    schedule()
    void write() // It never rejects.
  }

  function apply(): void {
    const { alerts } = options
    senders = applied(senders, alerts.receivers, {
      make: (config) => ({ config, sender: createSender(config) }),
      keep(entry, config) {
        entry.sender.use(settingsOf(config), changeOf(entry.config, config))
        entry.config = config
      },
      end: ({ sender }) => sender.stop(),
    })
    heartbeats = applied(heartbeats, alerts.heartbeats, {
      make: (config) => ({ config, heartbeat: createHeartbeat(deps, heartbeatOf(config)) }),
      keep(entry, config) {
        entry.heartbeat.use(heartbeatOf(config), heartbeatKey(config) === heartbeatKey(entry.config))
        entry.config = config
      },
      end: ({ heartbeat }) => heartbeat.stop(),
    })
  }

  type Changing<Entry, Config> = {
    make(config: Config): Entry
    keep(entry: Entry, config: Config): void
    end(entry: Entry): Promise<void>
  }

  function applied<Entry, Config extends { name: string }>(
    before: ReadonlyMap<string, Entry>,
    configs: readonly Config[],
    { make, keep, end }: Changing<Entry, Config>,
  ): Map<string, Entry> {
    const after = new Map<string, Entry>()
    for (const config of configs) {
      const known = before.get(config.name)
      if (known !== undefined) keep(known, config)
      after.set(config.name, known ?? make(config))
    }
    for (const [name, entry] of before) {
      if (after.has(name)) continue
      const ended = end(entry).finally(() => ending.delete(ended))
      ending.add(ended)
    }
    return after
  }

  function createSender(config: ReceiverConfig): AlertSender {
    const settings = settingsOf(config)
    const known = stored[config.name]
    // One that is removed and added again begins anew.
    delete stored[config.name]
    const state = known?.target === settings.targetId ? known : null
    return createAlertSender({ ...deps, alertBase, save: write }, settings, state)
  }

  function settingsOf(config: ReceiverConfig): SenderSettings {
    const { name, from, conditions = null, except = [], repeat, digest, max_per_hour: perHour } = config
    return {
      name,
      receiver: createReceiver(receiverDeps(), config),
      targetId: createHash('sha256').update(targetKey(config)).digest('hex'),
      filter: { from, only: conditions, except },
      waitMs: options.alerts.wait,
      repeatMs: repeat,
      perHour,
      digestAt: digest ?? null,
    }
  }

  function heartbeatOf(config: HeartbeatConfig): HeartbeatSettings {
    return {
      name: config.name,
      request: createHeartbeatRequest(receiverDeps(), config),
      everyMs: config.every,
      healthyVerdicts: healthyVerdictsOf(config),
    }
  }

  function alertBase() {
    return { gateway: gatewayName(options), page: page(), version: deps.version }
  }

  function page(): string | null {
    return options.alerts.page ?? null
  }

  function testDeps() {
    const { newId, version, situation } = deps
    return { ...receiverDeps(), clock, newId, version, page, situation }
  }

  function stateOfAll(): AlertState {
    return Object.fromEntries([...senders].map(([name, { sender }]) => [name, sender.state()]))
  }

  async function stop(): Promise<void> {
    isStopped = true
    cancel()
    await Promise.all([...working().map((one) => one.stop()), ...ending])
    if (senders.size > 0) await write()
  }
}

/** A secret of the same place counts as changed: what failed may work now. */
function changeOf(before: ReceiverConfig, after: ReceiverConfig): 'nothing' | 'settings' | 'target' {
  if (targetKey(before) !== targetKey(after)) return 'target'
  return isDeepStrictEqual(plain(before), plain(after)) ? 'nothing' : 'settings'
}

/** With the secrets: they are only compared. */
function plain(config: ReceiverConfig): unknown {
  return JSON.parse(
    JSON.stringify(config, (_key, value: unknown) => (value instanceof Secret ? value.reveal() : value)),
  )
}

export function gatewayName({ alerts }: Pick<AlertsOptions, 'alerts'>): string {
  return alerts.gateway ?? hostname()
}

export function receiverDepsOf(
  { env, clock, clockOffsetMs }: Pick<AlertsDeps, 'env' | 'clock' | 'clockOffsetMs'>,
  options: AlertsOptions,
): ReceiverDeps {
  return {
    env,
    proxy: options.proxy,
    ourTime: () => clock.now() + (clockOffsetMs() ?? 0),
    gateway: () => gatewayName(options),
  }
}
