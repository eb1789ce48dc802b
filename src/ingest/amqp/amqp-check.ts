// amqp-check.ts: tries a bridge to RabbitMQ for `check --connect` and `doctor`, and takes nothing: it
// connects to each node, and looks whether queues and exchanges exist. It declares nothing.

import { systemClock } from '../../std/clock.ts'
import { nodesText, nodeText } from './amqp-address.ts'
import { amqpOptions, type AmqpBridgeConfig } from './amqp-config.ts'
import { openChannel, type AmqpConnection } from './amqp-connection.ts'
import type { AmqpFault } from './amqp-faults/amqp-faults.ts'
import { partitionQueues } from './queue-names.ts'
import { findQueuesBeyond, type QueuesBeyond } from './queue-topology/queues-beyond.ts'
import { checkSteps, type TopologyStep } from './queue-topology/queue-topology.ts'
import type { AmqpNode, AmqpOptions } from './types.ts'

type Finding = { state: 'ok' | 'warning' | 'failed'; what: string; why?: string; act?: string }

const stopped: AmqpFault = { reason: 'unreachable', detail: 'The check was stopped.', act: 'Run it again.' }

/** Resolves with a finding in any case. `stop` ends the try. */
export async function checkAmqpBridge(config: AmqpBridgeConfig, stop: AbortSignal): Promise<Finding> {
  const options = amqpOptions(config)
  const where = `${options.name}: ${nodesText(options.nodes)}`
  const unreachable: string[] = []
  let version: string | null = null
  let missing: { step: TopologyStep; fault: AmqpFault } | null = null
  let waiting = 0
  let left: QueuesBeyond | null = null
  for (const node of options.nodes) {
    const tried = await tryNode(node, options, { stop, looks: version === null })
    if ('fault' in tried) {
      if (options.nodes.length === 1)
        return {
          state: 'failed',
          what: `${where} cannot be used.`,
          why: tried.fault.detail,
          act: tried.fault.act,
        }
      unreachable.push(`${nodeText(node)}: ${tried.fault.detail}`)
      continue
    }
    if (version !== null) continue
    ;({ version, missing, waiting, left } = tried)
  }
  if (version === null)
    return {
      state: 'failed',
      what: `${where} cannot be used.`,
      why: `No node answers. ${unreachable.join(' ')}`,
      act: 'Check `url`, `username` and `password` of the bridge, and that RabbitMQ runs.',
    }
  const what = `${where} accepts the connection (RabbitMQ ${version})`
  if (unreachable.length > 0)
    return {
      state: 'warning',
      what: `${what}, but not on each node.`,
      why: unreachable.join(' '),
      act: 'Start the node, or remove it from `url`.',
    }
  if (missing === null && left !== null)
    return {
      state: 'warning',
      what: `${what}; its queues exist.`,
      why: `${left.detail}, and they may still be bound.`,
      act: left.act,
    }
  if (missing === null)
    return { state: 'ok', what: `${what}; its queues exist, ${waiting} messages wait in them.` }
  const { step, fault } = missing
  if (fault.reason === 'queue_missing' && options.provisions)
    return { state: 'ok', what: `${what}; the gateway will declare its queues at the start.` }
  if (fault.reason === 'queue_missing')
    return {
      state: 'failed',
      what: `${what}, but it has no ${step.kind} ${step.name}.`,
      why: 'Messages that no queue takes are acknowledged by RabbitMQ and dropped.',
      act: step.command === null ? fault.act : `Set provision: true, or run: ${step.command}`,
    }
  return { state: 'warning', what: `${what}, with a difference.`, why: fault.detail, act: fault.act }
}

type Tried =
  | { fault: AmqpFault }
  | {
      version: string
      missing: { step: TopologyStep; fault: AmqpFault } | null
      waiting: number
      left: QueuesBeyond | null
    }

async function tryNode(
  node: AmqpNode,
  options: AmqpOptions,
  { stop, looks }: { stop: AbortSignal; looks: boolean },
): Promise<Tried> {
  let fault: AmqpFault | null = null
  let connection: AmqpConnection | null = null
  const { promise, resolve } = Promise.withResolvers<Tried>()
  const onAbort = () => resolve({ fault: stopped })
  stop.addEventListener('abort', onAbort, { once: true })
  if (stop.aborted) onAbort()
  const opening = openChannel(systemClock, {
    options,
    credentials: options,
    node,
    label: `${options.member} check`,
    queue: null,
    ended(found) {
      fault = found
      // Of a step that was refused, look() tells which one.
      if (connection === null) resolve({ fault: found })
    },
  })
  opening.then(
    async (made) => {
      if (made === null) return
      connection = made
      made.opened()
      resolve(await look(made, options, looks, () => fault))
    },
    (error: unknown) => resolve({ fault: { ...stopped, detail: String(error) } }),
  )
  const tried = await promise
  stop.removeEventListener('abort', onAbort)
  await (connection as AmqpConnection | null)?.close()
  return tried
}

async function look(
  made: AmqpConnection,
  options: AmqpOptions,
  looks: boolean,
  faultOf: () => AmqpFault | null,
): Promise<Tried> {
  const { channel, versionText: version } = made
  if (!looks) return { version, missing: null, waiting: 0, left: null }
  for (const step of checkSteps(options, made.version).filter(({ compares }) => !compares)) {
    try {
      await step.run(channel)
    } catch (error) {
      return { version, missing: { step, fault: faultOf() ?? made.faultOf(error) }, waiting: 0, left: null }
    }
  }
  let waiting = 0
  for (const queue of partitionQueues(options)) waiting += (await channel.checkQueue(queue)).messageCount
  return { version, missing: null, waiting, left: await findQueuesBeyond(made, options) }
}
