// types.ts: what a capacity plan is made from, and what it says. Rates are messages a second; one message is
// one payload.

import type { CapacityFigures, EngineName } from './capacity-figures.ts'

export type CapacityDemand = {
  vehicles: number
  /** From one message of a vehicle to its next. */
  everyMs: number
  messageBytes: number
  /** The busiest minutes, as a multiple of the mean. */
  peak: number
  /** The ingestion API takes nothing for this time. */
  outageMs: number
  /** The backlog shall be delivered within this time after it. */
  drainMs: number
  engine: EngineName
  /** NATS: `sync_interval: always`. RabbitMQ does it in any case. */
  flushesEach: boolean
  /** `delivered`: what waits for the API waits in the engine. */
  custody: 'spool' | 'delivered'
  /** Null: as many as are needed, and one to spare. */
  gateways: number | null
  partitions: number
  machines: {
    nodes: number
    nodeCores: number
    nodeMemoryBytes: number
    nodeDiskBytes: number
    gatewayCores: number
    spoolBytes: number
  }
  /** What the service takes at most, in payloads a second; null: not known. */
  servicePerS: number | null
  /** The link to the service; null: not known. */
  uploadBitsPerS: number | null
  figures: CapacityFigures
}

export type MessageFlow = {
  perS: number
  peakPerS: number
  perDay: number
  /** Messages that wait at the end of the outage. */
  inOutage: number
}

export type GatewayPlan = {
  needed: number
  /** With one to spare, so that one may be lost. */
  planned: number
  /** With one of them lost, at the peak. */
  perSEach: number
  coresEach: number
  memoryBytesEach: number
  /** Of the outage. 0 with custody `delivered`. */
  spoolBytesEach: number
}

export type EnginePlan = {
  nodes: number
  /** Of a node while another one is lost. */
  connectionsPerNode: number
  memoryBytesPerNode: number
  /** Of all nodes together, at the peak. */
  coresIn: number
  coresOut: number
  /** Of all nodes together, while new messages arrive and the backlog is taken. */
  coresInDrain: number
  coresPerNode: number
  /** Messages that the engine keeps at the end of the outage. */
  keptMessages: number
  diskBytesPerNode: number
  /** While no gateway takes anything. */
  diskBytesPerHour: number
  /** How long the disks of the nodes last then. */
  diskLastsMs: number
  /** Until the clients of a lost node are connected again. */
  reconnectMs: number
  /** Of the busiest partition, in the drain. */
  partitionPerS: number
}

export type DeliveryPlan = {
  requestsPerS: number
  uploadBitsPerS: number
  /** After the outage: new messages and backlog, so that the backlog is delivered in time. */
  neededPerS: number
  /** What all of it bears at most. */
  drainPerS: number
  drainRequestsPerS: number
  drainUploadBitsPerS: number
  /** Null: the backlog never ends. */
  drainMs: number | null
}

export type CapacityLimit = {
  what: string
  /** What the plan uses of it; above 1 it is too little. */
  share: number
  /** With everything else as it is; null where it does not grow with the vehicles. */
  vehicles: number | null
  act: string
}

export type CapacityPlan = {
  messages: MessageFlow
  gateways: GatewayPlan
  engine: EnginePlan
  delivery: DeliveryPlan
  /** The first one is reached first. */
  limits: CapacityLimit[]
}
