// capacity-command.ts: `capacity`: prints what a cluster of an engine and the gateways behind it need. It
// reads no config and asks no daemon.

import { Command, InvalidArgumentError, Option } from 'commander'
import { capacityFigures, figuresOf, isFigureName, planCapacity } from '../../capacity/capacity.ts'
import type { CapacityDemand, CapacityFigures, EngineName, FigureName } from '../../capacity/capacity.ts'
import { nearest } from '../../std/nearest-word.ts'
import { parseSize } from '../../std/quantity.ts'
import { duration, wholeNumber } from '../terminal/option-values.ts'
import { printAnswer, type BuildCommand, type CommandIo } from '../terminal/terminal.ts'
import { notes } from '../terminal/text-format.ts'
import { figureText, planText } from './capacity-text.ts'

type CapacityOptions = {
  vehicles: number
  every: number
  peak: number
  outage: number
  drain: number
  engine: EngineName
  flush: 'always' | 'interval'
  custody: 'spool' | 'delivered'
  gateways?: number
  partitions: number
  messageBytes: number
  nodes: number
  nodeCores: number
  nodeMemory: number
  nodeDisk: number
  gatewayCores: number
  spool: number
  serviceRate?: number
  upload?: number
  set: Partial<Record<FigureName, number>>
  figures?: boolean
  json?: boolean
}

const dayMs = 86_400_000
const gib = 1024 ** 3

export const capacityCommand: BuildCommand = (io, done) =>
  new Command('capacity')
    .option('--vehicles <number>', 'vehicles, each with one connection', wholeNumber(1, 1e9), 1_000_000)
    .addOption(ofTime('--every <duration>', 'from one message of a vehicle to its next', 30_000, '30s'))
    .option('--message-bytes <number>', 'bytes of a message', wholeNumber(1, 1e8), 320)
    .option('--peak <factor>', 'the busiest minutes, as a multiple of the mean', factor(1, 100), 1.5)
    .addOption(
      ofTime('--outage <duration>', 'the service takes nothing for this time', 8 * 3_600_000, '8h', 0),
    )
    .addOption(ofTime('--drain <duration>', 'deliver the backlog within this time', 8 * 3_600_000, '8h'))
    .addOption(new Option('--engine <name>', 'engine').choices(['rabbitmq', 'nats']).default('rabbitmq'))
    .addOption(
      new Option('--flush <when>', 'sync_interval of NATS: always, or an interval')
        .choices(['always', 'interval'])
        .default('always'),
    )
    .addOption(
      new Option('--custody <when>', 'custody of the bridge')
        .choices(['spool', 'delivered'])
        .default('spool'),
    )
    .option('--gateways <number>', 'gateways (default: as needed, and one to spare)', wholeNumber(1, 1000))
    .option('--partitions <number>', 'partitions of the bridge', wholeNumber(1, 64), 8)
    .option('--nodes <number>', 'nodes of the engine', wholeNumber(1, 99), 3)
    .option('--node-cores <number>', 'cores of a node', wholeNumber(1, 1000), 8)
    .addOption(ofSize('--node-memory <size>', 'memory of a node', 32 * gib, '32GiB'))
    .addOption(ofSize('--node-disk <size>', 'disk of a node', 1e12, '1TB'))
    .option('--gateway-cores <number>', 'cores of a gateway', wholeNumber(1, 1000), 4)
    .addOption(ofSize('--spool <size>', 'spool of a gateway (spool.max_bytes)', 200 * gib, '200GiB'))
    .option('--service-rate <number>', 'payloads a second that the service takes', wholeNumber(1, 1e9))
    .option('--upload <number>', 'link to the service in Mbit/s', wholeNumber(1, 1e9))
    .addOption(
      new Option('--set <name=value>', 'replace a figure of the table; may be repeated')
        .argParser(replacedFigure)
        .default({}, 'none'),
    )
    .option('--figures', 'print the table of figures with their sources instead')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      notes(
        'One node and one gateway may be lost in the plan. The figures were measured on a small machine; yours has ' +
          'others: measure them, and give them with --set.',
        'Exit status 1: something in the plan is too little.',
      ),
    )
    .action((options: CapacityOptions) => done(printPlan(options, io) ? 0 : 1))

/** False: something is too little. */
function printPlan(options: CapacityOptions, io: CommandIo): boolean {
  const figures = figuresOf(options.engine, options.set)
  if (options.figures === true) {
    const table = Object.entries(capacityFigures).map(([name, { unit, means, source }]) => ({
      name,
      value: figures[name as FigureName],
      unit,
      means,
      source: Object.hasOwn(options.set, name) ? '--set' : source,
    }))
    printAnswer(io, options, { engine: options.engine, figures: table }, figureText)
    return true
  }
  const demand = demandOf(options, figures)
  const plan = planCapacity(demand)
  const { figures: used, ...asked } = demand
  printAnswer(io, options, { demand: asked, figures: used, ...plan }, (_, width) =>
    planText(demand, plan, width),
  )
  return plan.limits.every(({ share }) => share <= 1)
}

function demandOf(options: CapacityOptions, figures: CapacityFigures): CapacityDemand {
  return {
    vehicles: options.vehicles,
    everyMs: options.every,
    messageBytes: options.messageBytes,
    peak: options.peak,
    outageMs: options.outage,
    drainMs: options.drain,
    engine: options.engine,
    flushesEach: options.flush === 'always',
    custody: options.custody,
    gateways: options.gateways ?? null,
    partitions: options.partitions,
    machines: {
      nodes: options.nodes,
      nodeCores: options.nodeCores,
      nodeMemoryBytes: options.nodeMemory,
      nodeDiskBytes: options.nodeDisk,
      gatewayCores: options.gatewayCores,
      spoolBytes: options.spool,
    },
    servicePerS: options.serviceRate ?? null,
    uploadBitsPerS: options.upload === undefined ? null : options.upload * 1e6,
    figures,
  }
}

function ofTime(flags: string, means: string, valueMs: number, text: string, leastMs = 1000): Option {
  return new Option(flags, means).argParser(duration(leastMs, 365 * dayMs)).default(valueMs, text)
}

function ofSize(flags: string, means: string, bytes: number, text: string): Option {
  return new Option(flags, means).argParser(size).default(bytes, text)
}

function size(text: string): number {
  const bytes = parseSize(text)
  if (bytes !== undefined && bytes > 0) return bytes
  throw new InvalidArgumentError('Give a size with its unit, such as 200GiB or 1TB.')
}

function factor(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (/^\d+(\.\d+)?$/.test(text) && value >= least && value <= most) return value
    throw new InvalidArgumentError(`Give a number from ${least} to ${most}.`)
  }
}

function replacedFigure(
  text: string,
  given: Partial<Record<FigureName, number>>,
): Partial<Record<FigureName, number>> {
  const [, name = '', number = ''] = /^([^=]*)=(.*)$/.exec(text) ?? []
  if (!isFigureName(name)) {
    const near = nearest(name, Object.keys(capacityFigures))
    throw new InvalidArgumentError(
      `There is no such figure.${near === undefined ? '' : ` Did you mean ${near}?`} --figures lists them.`,
    )
  }
  const value = Number(number)
  if (!/^\d+(\.\d+)?$/.test(number)) throw new InvalidArgumentError('Give NAME=VALUE with a number from 0.')
  return { ...given, [name]: value }
}
