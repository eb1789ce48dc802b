// capacity-limits.ts: what is used up first. Each limit says which share of it the plan uses, and how many
// vehicles would use all of it with everything else as it is.

import type {
  CapacityDemand,
  CapacityLimit,
  DeliveryPlan,
  EnginePlan,
  GatewayPlan,
  MessageFlow,
} from './types.ts'

type Parts = { messages: MessageFlow; gateways: GatewayPlan; engine: EnginePlan; delivery: DeliveryPlan }

export function limitsOf(demand: CapacityDemand, parts: Parts): CapacityLimit[] {
  const { messages, gateways, engine, delivery } = parts
  const { figures, machines, vehicles, servicePerS, uploadBitsPerS } = demand
  const { busy_share } = figures
  const limits: CapacityLimit[] = []
  /** `fixed`: of `used`, what does not grow with the vehicles. */
  const add = (what: string, used: number, available: number, act: string, fixed = 0) => {
    const growing = used - fixed
    limits.push({
      what,
      share: used / available,
      vehicles: growing > 0 ? Math.max(0, Math.floor((vehicles * (available - fixed)) / growing)) : null,
      act,
    })
  }
  const nodeMemory = machines.nodeMemoryBytes * busy_share
  add(
    'messages a second that the engine takes in',
    messages.peakPerS,
    demand.flushesEach ? Math.min(figures.flushed_per_s_max, figures.in_per_s_max) : figures.in_per_s_max,
    demand.flushesEach && figures.flushed_per_s_max < figures.in_per_s_max
      ? 'Set sync_interval to some seconds, take RabbitMQ, or divide the vehicles over several clusters.'
      : 'More was not tried. Try it with your machines, or divide the vehicles over several clusters.',
  )
  add(
    'messages a second that the engine hands out',
    messages.peakPerS,
    figures.out_per_s_max,
    'More was not tried. Divide the vehicles over several clusters.',
  )
  add(
    'cores of a node',
    engine.coresPerNode,
    machines.nodeCores * busy_share,
    'Take nodes with more cores, or more nodes.',
  )
  add(
    'memory of a node',
    engine.memoryBytesPerNode,
    nodeMemory,
    'Take nodes with more memory, or more nodes.',
    Math.min(figures.node_bytes, nodeMemory),
  )
  add(
    'disk of a node',
    engine.diskBytesPerNode,
    machines.nodeDiskBytes * busy_share,
    'Take larger disks, or larger spools with custody spool.',
  )
  add(
    'messages a second that the gateways take and deliver',
    messages.peakPerS,
    Math.max(1, gateways.planned - 1) * figures.gateway_per_s_max * busy_share,
    'Add gateways.',
  )
  add('cores of a gateway', gateways.coresEach, machines.gatewayCores * busy_share, 'Add gateways.')
  add(
    'gateways, of which each needs a partition',
    gateways.planned,
    demand.partitions,
    'Configure more partitions before the start: changing them later needs empty queues.',
    gateways.planned,
  )
  if (messages.inOutage > 0)
    add(
      'payloads a second after the outage',
      delivery.neededPerS,
      delivery.drainPerS,
      'Add gateways, ask the service for a higher rate, or accept a longer time.',
    )
  if (servicePerS !== null)
    add(
      'payloads a second of the service',
      messages.peakPerS,
      servicePerS,
      'Ask the service for a higher rate.',
    )
  if (uploadBitsPerS !== null)
    add(
      'upload to the service',
      delivery.uploadBitsPerS,
      uploadBitsPerS,
      'Take a faster link, or delivery.compress.',
    )
  return limits.toSorted((one, other) => other.share - one.share)
}
