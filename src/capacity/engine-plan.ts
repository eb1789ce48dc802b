// engine-plan.ts: what the nodes of the engine need: cores for messages in and out, memory for connections,
// disk for what waits. One node may be lost: its connections and its work are at the others then.

import { spooledBytes } from './capacity-figures.ts'
import type { CapacityDemand, DeliveryPlan, EnginePlan, GatewayPlan, MessageFlow } from './types.ts'

/** Copies of a message; a cluster of one node has one. */
const copiesMax = 3

const hourS = 3600

export function planEngine(
  demand: CapacityDemand,
  { messages, gateways, delivery }: { messages: MessageFlow; gateways: GatewayPlan; delivery: DeliveryPlan },
): EnginePlan {
  const { figures, vehicles, machines, messageBytes, partitions } = demand
  const { nodes, nodeCores, nodeDiskBytes } = machines
  const working = Math.max(1, nodes - 1)
  const copies = Math.min(copiesMax, nodes)
  const connectionsPerNode = vehicles / working
  const coresIn = (messages.peakPerS * figures.in_cpu_us) / 1e6
  const coresOut = (messages.peakPerS * figures.out_cpu_us) / 1e6
  const coresInDrain = (messages.perS * figures.in_cpu_us + delivery.neededPerS * figures.out_cpu_us) / 1e6
  const keptMessages = keptIn(demand, messages, gateways)
  // Of a message, on each node: all of them have all messages as long as there are as many nodes as copies.
  const storedBytes = ((messageBytes + figures.stored_bytes) * copies) / nodes
  const bytesPerS = messages.perS * storedBytes
  return {
    nodes,
    connectionsPerNode,
    memoryBytesPerNode:
      figures.node_bytes +
      connectionsPerNode * figures.connection_bytes +
      vehicles * figures.user_bytes +
      (keptMessages * figures.queued_memory_bytes * copies) / nodes,
    coresIn,
    coresOut,
    coresInDrain,
    coresPerNode: Math.max(coresIn + coresOut, coresInDrain) / working,
    keptMessages,
    diskBytesPerNode: keptMessages * storedBytes,
    diskBytesPerHour: bytesPerS * hourS,
    diskLastsMs: ((nodeDiskBytes * figures.busy_share) / bytesPerS) * 1000,
    reconnectMs:
      nodes === 1
        ? (vehicles * figures.connect_cpu_us) / nodeCores / 1000
        : ((vehicles / nodes) * figures.connect_cpu_us) / (working * nodeCores) / 1000,
    partitionPerS: delivery.drainPerS / partitions,
  }
}

function keptIn(
  { custody, figures, machines }: CapacityDemand,
  messages: MessageFlow,
  gateways: GatewayPlan,
): number {
  if (custody === 'delivered') return messages.inOutage
  const working = Math.max(1, gateways.planned - 1)
  const inSpools = (working * machines.spoolBytes) / spooledBytes(figures)
  return Math.max(0, messages.inOutage - inSpools)
}
