// topology-link.ts: a connection that declares or checks what must exist in RabbitMQ (queue-topology.ts), and
// asks the queues for their depth. The queues do not wait for it longer than for its first try: messages
// flow over their own connections, also where the user may not declare anything.
//
// RabbitMQ closes the channel when it refuses something. What it refuses is reported, and the connection is
// made again for the steps behind it. All of it is done again at each connection and every minute.

import { pause, type CancelTimer, type Clock } from '../../../std/clock.ts'
import type { SourceRisk } from '../../../domain/condition-state.ts'
import type { Emit } from '../../../domain/event.ts'
import type { EngineLosses } from '../../message-sources/engine-losses.ts'
import type { RiskFinding, SourceRisks } from '../../message-sources/source-risks.ts'
import { openChannel, type AmqpConnection } from '../amqp-connection.ts'
import type { AmqpFault } from '../amqp-faults/amqp-faults.ts'
import { createNodeTurns } from '../node-turns.ts'
import { inboxQueue, partitionQueues } from '../queue-names.ts'
import { createBeyondWatch } from './queues-beyond.ts'
import { probeStoredTime } from './stored-time-probe.ts'
import { QueueDepths, type QueueDepth, type QueueTakes } from './queue-depths.ts'
import { checkSteps, provisionSteps, usesInbox, type TopologyStep } from './queue-topology.ts'
import type { AmqpCredentials, AmqpOptions } from '../types.ts'

export type TopologyLink = {
  /** `tried`: once, after the first try. */
  start(tried: () => void): void
  /** A queue does not exist, null where it is not known which: declare again. */
  missing(queue: string | null): void
  /** As RabbitMQ said last; null where it did not. */
  depthOf(queue: string): QueueDepth | null
  close(): Promise<void>
}

type Deps = {
  clock: Clock
  emit: Emit
  random: () => number
  credentials: AmqpCredentials
  risks: SourceRisks
  lost: EngineLosses
  /** What this gateway has of a queue. */
  takesOf: (queue: string) => QueueTakes
  /** The depths are known again. */
  asked: () => void
}

/** What RabbitMQ refuses may be any of these. */
const refusals = ['queue_missing', 'exchange_missing', 'queue_differs', 'not_declared'] as const

const againEveryMs = 60_000
/** What RabbitMQ had delivered before an answer has arrived then, over the connections of the queues. */
const arrivedMs = 300
/** To the steps behind one that was refused. */
const nextTryMs = 100

export function createTopologyLink(deps: Deps, options: AmqpOptions): TopologyLink {
  const { clock, emit, credentials, risks } = deps
  const { name: messageSource, member } = options
  const queues = [...partitionQueues(options), ...(usesInbox(options) ? [inboxQueue(options.prefix)] : [])]
  const turns = createNodeTurns(deps, options)
  let connection: AmqpConnection | null = null
  /** Refused in this round, by their place among the steps. */
  let refused = new Map<number, AmqpFault>()
  let current: number | null = null
  /** The user may not declare, so arguments of queues cannot be compared. */
  let mayNotCompare = false
  let roundAtMs: number | null = null
  let cancel: CancelTimer = () => {}
  let stopping = false
  let tried: (() => void) | null = null
  /** What RabbitMQ does not offer was looked for. */
  let isLooked = false
  const beyond = createBeyondWatch(deps, options)
  const depths = new QueueDepths(deps.lost)
  /** Its depth is asked for. */
  let asking: string | null = null
  const stop = new AbortController()

  function connect(): void {
    if (stopping || connection !== null) return
    // It has no failure: ended() gets it.
    void open()
  }

  async function open(): Promise<void> {
    const made = await openChannel(clock, {
      options,
      credentials,
      node: turns.node(),
      label: member,
      queue: null,
      ended: (fault) => ended(fault),
    })
    if (made === null) return
    if (stopping) return void made.close()
    connection = made
    made.opened()
    turns.reset()
    turns.opened()
    await work(made)
  }

  async function work(made: AmqpConnection): Promise<void> {
    if (roundAtMs === null || clock.monotonic() - roundAtMs >= againEveryMs) {
      if (!(await runSteps(made))) return
      roundAtMs = clock.monotonic()
      if (options.provisions && refused.size === 0) depths.declared()
      report()
      didTry()
      // They have no failure.
      void beyond.look(made)
      if (!isLooked) void lookForLimits()
    }
    if (!(await askDepths(made))) return
    cancel = clock.after(options.depthEveryMs, () => {
      // It has no failure.
      if (connection === made) void work(made)
    })
  }

  /** False where the connection ended meanwhile. */
  async function runSteps(made: AmqpConnection): Promise<boolean> {
    const steps = stepsOf(made)
    for (const [index, { name, run, compares }] of steps.entries()) {
      // To declare a queue that is missing would create it.
      const isMissing = compares && [...refused.keys()].some((other) => steps[other]!.name === name)
      if (refused.has(index) || isMissing || (compares && mayNotCompare)) continue
      current = index
      try {
        await run(made.channel)
      } catch {
        // ended() gets the reason.
        return false
      }
      if (connection !== made) return false
    }
    current = null
    return true
  }

  function stepsOf({ version }: AmqpConnection): TopologyStep[] {
    return options.provisions ? provisionSteps(options, version) : checkSteps(options, version)
  }

  async function askDepths(made: AmqpConnection): Promise<boolean> {
    const found = new Map<string, { depth: QueueDepth; before: QueueTakes }>()
    for (const queue of queues) {
      asking = queue
      const before = deps.takesOf(queue)
      try {
        const { messageCount, consumerCount } = await made.channel.checkQueue(queue)
        found.set(queue, { depth: { messages: messageCount, consumers: consumerCount }, before })
      } catch {
        // ended() gets the reason.
        return false
      }
      if (connection !== made) return false
    }
    asking = null
    if (!(await pause(clock, arrivedMs, stop.signal)) || connection !== made) return false
    for (const [queue, { depth, before }] of found)
      depths.answered(queue, depth, { before, takes: deps.takesOf(queue) })
    deps.asked()
    return true
  }

  function report(): void {
    const found = new Map<SourceRisk, Map<string, RiskFinding>>(refusals.map((risk) => [risk, new Map()]))
    if (connection === null) return
    const steps = stepsOf(connection)
    for (const [index, { reason, detail, act }] of refused) {
      const { command, kind, name, compares } = steps[index]!
      if (compares && reason === 'access_refused') {
        mayNotCompare = true
        continue
      }
      found.get(riskOf(reason, kind))?.set(name, {
        clientId: member,
        detail: reason === 'queue_missing' ? `RabbitMQ has no ${kind} ${name}` : detail,
        act: reason === 'queue_missing' && command !== null ? `Set provision: true, or run: ${command}` : act,
      })
    }
    refused = new Map()
    for (const [risk, those] of found) risks.setAll(risk, those)
  }

  /** Once: the next start sees another RabbitMQ. */
  async function lookForLimits(): Promise<void> {
    isLooked = true
    if (!options.provisions) {
      const detail = 'RabbitMQ cannot list bindings over AMQP, and drops what no queue takes'
      const act = `Check with rabbitmqctl list_bindings that the keys of bind lead to ${queues.join(', ')}.`
      emit({ kind: 'message_source_limited', messageSource, limit: 'bindings_unseen', detail, act })
      return
    }
    const has = await probeStoredTime(clock, { options, credentials, node: turns.node() }, stop.signal)
    if (has !== false) return
    const detail =
      'RabbitMQ does not say when it got a message, so a message without a device time may get another payloadId ' +
      'when it is delivered again' +
      (options.custody === 'delivered'
        ? ', and messages of a gateway lost in an outage may lose their order'
        : '')
    const act =
      (options.custody === 'delivered' ? '' : 'Where messages have no device time: ') +
      'Set message_interceptors.incoming.set_header_timestamp.overwrite = false ' +
      'in rabbitmq.conf (RabbitMQ 3.12 and newer), and start RabbitMQ again.'
    emit({ kind: 'message_source_limited', messageSource, limit: 'no_stored_time', detail, act })
  }

  function ended(fault: AmqpFault): void {
    connection = null
    cancel()
    if (stopping) return
    const step = current
    current = null
    // Where the connection is lost, it is not the step that failed.
    if (step !== null && isRefusal(fault)) {
      refused.set(step, fault)
      cancel = clock.after(nextTryMs, connect)
      return
    }
    if (fault.reason === 'queue_missing') {
      roundAtMs = null
      if (asking !== null) depths.missing(asking)
    }
    asking = null
    depths.unknown()
    const retryInMs = turns.failed(fault, null)
    if (turns.isRoundOver()) didTry()
    // The queues have the same fault on their connections, and report it.
    cancel = clock.after(retryInMs, connect)
  }

  function didTry(): void {
    const call = tried
    tried = null
    call?.()
  }

  return {
    start(onTried) {
      tried = onTried
      connect()
    },
    missing(queue) {
      roundAtMs = null
      if (queue !== null) depths.missing(queue)
    },
    depthOf: (queue) => depths.depthOf(queue),
    async close() {
      stopping = true
      stop.abort()
      cancel()
      await connection?.close()
      connection = null
    },
  }
}

/** RabbitMQ answered, and said no. */
function isRefusal({ reason }: AmqpFault): boolean {
  return ['access_refused', 'queue_missing', 'queue_differs', 'queue_locked', 'plugin_missing'].includes(
    reason,
  )
}

function riskOf(reason: AmqpFault['reason'], kind: TopologyStep['kind']): (typeof refusals)[number] {
  if (reason === 'queue_missing') return kind === 'queue' ? 'queue_missing' : 'exchange_missing'
  return reason === 'queue_differs' ? 'queue_differs' : 'not_declared'
}
