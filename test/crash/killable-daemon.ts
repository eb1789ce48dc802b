// killable-daemon.ts: the process under test: the unchanged gateway, in a process that kills itself at a
// given point.
//
//   node test/crash/killable-daemon.ts --config FILE [--kill-at POINT --after N] [--mistake NAME]
//     [--clock-behind MS]
//
// Its parent follows its log, in which it adds a line for each event that the parent waits for: the log itself leaves out
// what repeats.

import { parseArgs } from 'node:util'
import { realPlaces, startGateway, systemKernelClock } from '../../src/app/app.ts'
import { loadConfig } from '../../src/config/config.ts'
import type { GatewayEvent } from '../../src/domain/event.ts'
import { newRandomId } from '../../src/domain/ids.ts'
import { systemClock } from '../../src/std/clock.ts'
import { checkInThread, openLevelStore, readTablesInThread, realDisk } from '../../src/storage/storage.ts'
import {
  countdown,
  makeMistake,
  mistakes,
  points,
  reachByEvent,
  reachInStore,
  releasePoints,
  type Mistake,
  type AnyPoint,
} from './kill-points.ts'

const { values } = parseArgs({
  options: {
    config: { type: 'string' },
    'kill-at': { type: 'string' },
    after: { type: 'string', default: '1' },
    mistake: { type: 'string' },
    'clock-behind': { type: 'string', default: '0' },
  },
})

const path = oneArgument(values.config)
const point = values['kill-at'] === undefined ? null : oneOf([...points, ...releasePoints], values['kill-at'])
const mistake = values.mistake === undefined ? null : oneOf(mistakes, values.mistake)

/** The events that the parent waits for. */
const reportedEvents = new Set<GatewayEvent['kind']>([
  'spool_held',
  'spool_resumed',
  'store_lost',
  'store_reopened',
  'store_reopen_failed',
  'chunk_damaged',
  'conservation_broken',
])

const reach = countdown(point, Number(values.after), () => process.kill(process.pid, 'SIGKILL'))

const openStore = mistake === null ? openLevelStore : makeMistake(openLevelStore, mistake)

const stopAsked = new Promise((resolve) => {
  process.once('SIGTERM', resolve)
})

const behindMs = Number(values['clock-behind'])

const { config } = await loadConfig(path, { env: process.env })
const gateway = await startGateway(
  {
    clock: { ...systemClock, now: () => systemClock.now() - behindMs },
    kernel: systemKernelClock(realPlaces(process.env)),
    random: Math.random,
    newId: newRandomId,
    env: process.env,
    stdout: process.stdout,
    version: '0.0.0-crash',
    openStore: reachInStore(openStore, reach),
    checkStore: checkInThread,
    readTables: readTablesInThread,
    disk: realDisk,
    observe(event) {
      reachByEvent(event, reach)
      if (!reportedEvents.has(event.kind)) return
      const observed = event.kind === 'spool_held' ? `${event.kind} ${event.reason}` : event.kind
      process.stdout.write(`${JSON.stringify({ observed, detail: event })}\n`)
    },
  },
  config,
  path,
)
await Promise.race([stopAsked, gateway.broken.then((fault) => Promise.reject(fault))])
await gateway.stop('SIGTERM')
process.exit(0)

function oneArgument(value: string | undefined): string {
  if (value === undefined) throw new Error('--config is missing')
  return value
}

function oneOf<Name extends AnyPoint | Mistake>(names: readonly Name[], value: string): Name {
  const found = names.find((name) => name === value)
  if (found === undefined) throw new Error(`${value} is none of ${names.join(', ')}`)
  return found
}
