// capacity-text.ts: a capacity plan as a table for a person.

import type { CapacityDemand, CapacityPlan } from '../../capacity/capacity.ts'
import { formatDuration, formatSize } from '../../std/quantity.ts'
import { columns } from '../../std/text-table/text-table.ts'

type Row = readonly [what: string, value: string, remark?: string]

const hourMs = 3_600_000

export function planText(demand: CapacityDemand, plan: CapacityPlan, width: number): string {
  const sections: readonly (readonly [title: string, rows: readonly Row[]])[] = [
    ['Messages', messageRows(demand, plan)],
    [`Engine: ${demand.engine}, ${demand.machines.nodes} nodes`, engineRows(demand, plan)],
    ['Gateways', gatewayRows(demand, plan)],
    ['Service', deliveryRows(demand, plan)],
  ]
  const rows = sections.flatMap(([title, own]) => [
    [title, '', ''],
    ...own.map(([what, value, remark = '']) => [`  ${what}`, value, remark]),
    ['', '', ''],
  ])
  return `${[...columns(rows, width), ...limitLines(plan, width)].join('\n')}\n`
}

function messageRows(
  { vehicles, everyMs, peak, outageMs }: CapacityDemand,
  { messages }: CapacityPlan,
): Row[] {
  return [
    ['messages/s', count(messages.perS), `${count(vehicles)} vehicles, one each ${formatDuration(everyMs)}`],
    ['at the peak', count(messages.peakPerS), `${peak} times the mean`],
    ['a day', count(messages.perDay)],
    ['backlog', count(messages.inOutage), `after an outage of ${formatDuration(outageMs)}`],
  ]
}

function engineRows({ machines, partitions }: CapacityDemand, { engine }: CapacityPlan): Row[] {
  return [
    [
      'connections of a node',
      count(engine.connectionsPerNode),
      machines.nodes > 1 ? 'while another one is lost' : '',
    ],
    ['memory of a node', formatSize(engine.memoryBytesPerNode), 'while another one is lost'],
    ['cores for messages in', cores(engine.coresIn), 'of all nodes, at the peak'],
    ['cores for messages out', cores(engine.coresOut), 'of all nodes, at the peak'],
    ['cores in the drain', cores(engine.coresInDrain), 'of all nodes'],
    ['cores of a node', cores(engine.coresPerNode), 'while another one is lost'],
    ['messages kept', count(engine.keptMessages), 'at the end of the outage'],
    ['disk of a node', formatSize(engine.diskBytesPerNode), 'at the end of the outage'],
    ['disk grows', `${formatSize(engine.diskBytesPerHour)}/h`, 'of a node, while no gateway takes anything'],
    ['disk lasts', duration(engine.diskLastsMs), 'while no gateway takes anything, from an empty disk on'],
    ['reconnect', duration(engine.reconnectMs), 'until the vehicles of a lost node are connected again'],
    ['each partition', `${count(engine.partitionPerS)}/s`, `in the drain, of ${partitions}`],
  ]
}

function gatewayRows({ custody }: CapacityDemand, { gateways }: CapacityPlan): Row[] {
  return [
    ['gateways', count(gateways.planned), `${count(gateways.needed)} needed while one is lost`],
    ['messages/s of each', count(gateways.perSEach), 'at the peak, while one is lost'],
    ['cores of each', cores(gateways.coresEach)],
    ['memory of each', formatSize(gateways.memoryBytesEach)],
    [
      'spool of each',
      formatSize(Math.ceil(gateways.spoolBytesEach)),
      custody === 'spool'
        ? 'at the end of the outage'
        : 'with custody delivered the engine keeps the backlog',
    ],
  ]
}

function deliveryRows({ outageMs }: CapacityDemand, { delivery }: CapacityPlan): Row[] {
  return [
    ['requests/s', count(delivery.requestsPerS), 'at the peak'],
    ['upload', bits(delivery.uploadBitsPerS), 'at the peak, without compression'],
    ['drain needs', `${count(delivery.neededPerS)}/s`, 'new messages and backlog, to end in time'],
    ['drain', `${count(delivery.drainPerS)}/s`, 'new messages and backlog, at most'],
    ['requests/s in the drain', count(delivery.drainRequestsPerS)],
    ['upload in the drain', bits(delivery.drainUploadBitsPerS)],
    [
      'backlog delivered after',
      delivery.drainMs === null ? 'never' : duration(delivery.drainMs),
      delivery.drainMs === null ? 'new messages take everything' : `an outage of ${formatDuration(outageMs)}`,
    ],
  ]
}

/** The first limits: those behind them are far away. */
const limitsShown = 6

function limitLines({ limits }: CapacityPlan, width: number): string[] {
  const rows = limits
    .slice(0, limitsShown)
    .map(({ what, share, vehicles, act }) => [
      `  ${share > 1 ? 'TOO LITTLE' : 'enough'}`,
      percent(share),
      what,
      vehicles === null ? '' : `${count(vehicles)} vehicles`,
      share > 1 ? act : '',
    ])
  return [
    'Limits, the next one first: share in use, and the vehicles that use all of it',
    ...columns(rows, width),
  ]
}

type FigureRow = { name: string; value: number; unit: string; means: string; source: string }

export function figureText({ figures }: { figures: readonly FigureRow[] }, width: number): string {
  const rows = figures.map(({ name, value, unit, means, source }) => [
    name,
    String(value),
    unit,
    means,
    source,
  ])
  return `${columns([['figure', 'value', 'unit', 'means', 'source'], ...rows], width).join('\n')}\n`
}

function count(value: number): string {
  const digits = value < 10 && !Number.isInteger(value) ? 1 : 0
  return value.toLocaleString('en-US', { maximumFractionDigits: digits })
}

function cores(value: number): string {
  return value.toFixed(value < 10 ? 2 : 0)
}

function percent(share: number): string {
  return Number.isFinite(share) ? `${Math.round(share * 100)} %` : 'without end'
}

function bits(perS: number): string {
  return perS < 1e6 ? `${Math.ceil(perS / 1000)} kbit/s` : `${count(perS / 1e6)} Mbit/s`
}

function duration(ms: number): string {
  return ms > 999 * 24 * hourMs ? 'years' : formatDuration(ms)
}
