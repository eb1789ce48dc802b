// capacity.ts: the capacity plan: what a cluster of an engine and the gateways behind it need for a number of
// vehicles, and which limit comes next. Entry file of this folder. Pure: numbers in, numbers out.
//
//   capacity-figures   what one message, connection and payload costs, each with its source
//   engine-plan        cores, memory and disk of the nodes
//   capacity-limits    which machine or rate is used up first
//
// Rules
//   One node of the engine may be lost, and one gateway: the rest bears the load.
//   Cores, memory and disk are planned up to `busy_share`. Rates are planned at the peak; stored bytes and
//   the backlog at the mean.
//   The backlog of an outage is in the spools of the gateways as far as they are large enough, and otherwise
//   in the engine. With custody `delivered` all of it is in the engine.
//
// What it is not: a promise. Figures of another machine are others, and costs do not grow in proportion for
// ever. The proof (test/engines/capacity.proof.ts) takes the figures of a small case and compares the plan of
// a larger one with what is measured.

import { spooledBytes } from './capacity-figures.ts'
import { limitsOf } from './capacity-limits.ts'
import { planEngine } from './engine-plan.ts'
import type { CapacityDemand, CapacityPlan, DeliveryPlan, GatewayPlan, MessageFlow } from './types.ts'

export { capacityFigures, figuresOf, isFigureName } from './capacity-figures.ts'
export type { CapacityFigures, EngineName, FigureName } from './capacity-figures.ts'
export type { CapacityDemand, CapacityPlan } from './types.ts'

export function planCapacity(demand: CapacityDemand): CapacityPlan {
  const messages = flowOf(demand)
  const gateways = planGateways(demand, messages)
  const delivery = planDelivery(demand, messages, gateways)
  const engine = planEngine(demand, { messages, gateways, delivery })
  return {
    messages,
    gateways,
    engine,
    delivery,
    limits: limitsOf(demand, { messages, gateways, engine, delivery }),
  }
}

function flowOf({ vehicles, everyMs, peak, outageMs }: CapacityDemand): MessageFlow {
  const perS = (vehicles * 1000) / everyMs
  return { perS, peakPerS: perS * peak, perDay: perS * 86_400, inOutage: (perS * outageMs) / 1000 }
}

function neededPerS({ drainMs }: CapacityDemand, { perS, inOutage }: MessageFlow): number {
  return perS + (inOutage * 1000) / drainMs
}

function planGateways(demand: CapacityDemand, messages: MessageFlow): GatewayPlan {
  const { figures, gateways, custody } = demand
  const { peakPerS, inOutage } = messages
  const bearable = figures.gateway_per_s_max * figures.busy_share
  const needed = Math.max(1, Math.ceil(Math.max(peakPerS, neededPerS(demand, messages)) / bearable))
  const planned = gateways ?? needed + 1
  // Where there is only one, none may be lost.
  const working = Math.max(1, planned - 1)
  const perSEach = peakPerS / working
  const spooled = custody === 'spool' ? (inOutage / working) * spooledBytes(figures) : 0
  return {
    needed,
    planned,
    perSEach,
    coresEach: (perSEach * figures.gateway_cpu_us) / 1e6,
    memoryBytesEach: figures.gateway_bytes,
    spoolBytesEach: Math.min(spooled, demand.machines.spoolBytes),
  }
}

function planDelivery(demand: CapacityDemand, messages: MessageFlow, gateways: GatewayPlan): DeliveryPlan {
  const { figures, servicePerS, uploadBitsPerS } = demand
  const { payload_bytes, batch_payloads, request_bytes } = figures
  const requests = (perS: number) => perS / batch_payloads
  const bits = (perS: number) => 8 * (perS * payload_bytes + requests(perS) * request_bytes)
  const bitsOfOne = 8 * (payload_bytes + request_bytes / batch_payloads)
  const drainPerS = Math.min(
    Math.max(1, gateways.planned - 1) * figures.gateway_per_s_max,
    figures.out_per_s_max,
    servicePerS ?? Infinity,
    uploadBitsPerS === null ? Infinity : uploadBitsPerS / bitsOfOne,
  )
  const spare = drainPerS - messages.perS
  return {
    requestsPerS: requests(messages.peakPerS),
    uploadBitsPerS: bits(messages.peakPerS),
    neededPerS: neededPerS(demand, messages),
    drainPerS,
    drainRequestsPerS: requests(drainPerS),
    drainUploadBitsPerS: bits(drainPerS),
    drainMs: spare > 0 ? (messages.inOutage / spare) * 1000 : null,
  }
}
