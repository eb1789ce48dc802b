// member-name.ts: notices another gateway with the same `member`. A connection of its own has the queue
// PREFIX.member.MEMBER for itself alone (exclusive), so RabbitMQ refuses it to every other connection, at any
// node. Nothing is put into the queue, and it is gone with its connection.
//
// Messages do not wait for it: RabbitMQ gives a queue to one consumer, whatever its name. But two gateways of
// one name have the same priorities, so RabbitMQ has no reason to give each of them some of the queues.
//
// RabbitMQ also refuses the queue while it has a connection of this gateway that was lost without a word; it
// notices that by heartbeat within 30 s (3.10 and 4.0 took 27 s). So a name is that of another gateway where
// it is refused for `nameTakenAfterMs`. Where the user may not declare the queue, nothing is known of it.

import { every, type CancelTimer, type Clock } from '../../../std/clock.ts'
import type { EngineAlarms } from '../engine-alarms.ts'
import type { SourceRisks } from '../../message-sources/source-risks.ts'
import { openChannel, type AmqpConnection } from '../amqp-connection.ts'
import type { AmqpFault } from '../amqp-faults/amqp-faults.ts'
import { createNodeTurns } from '../node-turns.ts'
import { consumerPriority, memberQueue } from '../queue-names.ts'
import type { AmqpCredentials, AmqpOptions } from '../types.ts'

export type MemberName = {
  start(): void
  close(): Promise<void>
}

type Deps = {
  clock: Clock
  random: () => number
  credentials: AmqpCredentials
  risks: SourceRisks
  alarms: EngineAlarms
}

export function createMemberName(deps: Deps, options: AmqpOptions): MemberName {
  const { clock, credentials, risks, alarms } = deps
  const { member, nameTakenAfterMs, probeEveryMs } = options
  const queue = memberQueue(options.prefix, member)
  const turns = createNodeTurns(deps, options, consumerPriority(member, queue))
  let connection: AmqpConnection | null = null
  /** Monotonic: since then the queue is ours. */
  let ownSinceMs: number | null = null
  /** Monotonic: since then it is that of another connection. */
  let refusedSinceMs: number | null = null
  /** False: the user may not write to the default exchange, so alarms are not heard. */
  let mayProbe = true
  let endProbes: CancelTimer = () => {}
  let cancelRetry: CancelTimer = () => {}
  let stopping = false

  function start(): void {
    // It has no failure: ended() gets it.
    if (!stopping) void open()
  }

  async function open(): Promise<void> {
    const made = await openChannel(clock, {
      options,
      credentials,
      node: turns.node(),
      label: `${member} name`,
      queue,
      ended,
      blocked: (reason) => alarms.set(queue, reason),
    })
    if (made === null) return
    if (stopping) return made.close()
    connection = made
    try {
      await made.channel.assertQueue(queue, { exclusive: true, durable: false, maxLength: 0 })
    } catch {
      // ended() gets the reason.
      return
    }
    if (connection !== made) return
    made.opened()
    turns.opened()
    ownSinceMs = clock.monotonic()
    refusedSinceMs = null
    setTaken(false)
    if (mayProbe) endProbes = every(clock, probeEveryMs, () => probe(made))
  }

  /** RabbitMQ answers with its alarm, if there is one; the queue keeps nothing. */
  function probe({ channel }: AmqpConnection): void {
    channel.publish('', queue, Buffer.alloc(0))
  }

  function ended(fault: AmqpFault): void {
    const nowMs = clock.monotonic()
    const openMs = ownSinceMs === null ? null : nowMs - ownSinceMs
    connection = null
    ownSinceMs = null
    endProbes()
    alarms.set(queue, null)
    if (stopping) return
    if (fault.reason === 'access_refused') {
      // The user may not declare it: it is tried again at the next start.
      if (openMs === null) return setTaken(false)
      mayProbe = false
    }
    let retryInMs = turns.failed(fault, openMs)
    if (fault.reason === 'queue_locked') {
      refusedSinceMs ??= nowMs
      if (nowMs - refusedSinceMs >= nameTakenAfterMs) setTaken(true)
      retryInMs = nameTakenAfterMs / 3
    } else refusedSinceMs = null
    cancelRetry = clock.after(retryInMs, start)
  }

  function setTaken(isTaken: boolean): void {
    const detail = `Another gateway takes part as ${member}. RabbitMQ does not share the queues between the two`
    risks.set('member_twice', member, isTaken ? { clientId: member, detail } : null)
  }

  return {
    start,
    async close() {
      stopping = true
      endProbes()
      cancelRetry()
      await connection?.close()
      connection = null
    },
  }
}
