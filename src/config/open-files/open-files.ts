// open-files.ts: the limit of open files (RLIMIT_NOFILE) and who may use them. Without a free file the daemon
// cannot write, send or start a thread. So what these need is reserved, and the connections of devices get
// the rest, as if ingest.broker.limits.max_connections were that number.

import { readFileSync } from 'node:fs'
import type { AlertsConfig } from '../../alerts/config.ts'
import { deliveryOptions, type DeliveryConfig } from '../../delivery/config.ts'
import type { IngestConfig } from '../../ingest/config.ts'
import type { ConfigWarning } from '../config-warnings.ts'

type Sections = { ingest: IngestConfig; delivery: DeliveryConfig; alerts: AlertsConfig }

/**
 * Node itself, its threads, the logs of the databases and their compaction, watched and read files, children,
 * and sockets that are being closed. An idle daemon has 40 files open.
 */
const ownFiles = 150
/** Tables that LevelDB holds open beyond those that it maps: a fifth of the limit, and no more than this. */
const tableFilesMax = 1000
/** Connections to ops (four times as many as stay, for a moment) and to the control socket. */
const opsFiles = 4 * 64 + 64
/** A child and its pipes, or a socket. */
const filesOfReceiver = 4
/** Sockets of a bridge, the next connection included. */
const filesOfBridge = 8
/** The least part of the limit for devices. What is reserved is rarely in use all at once. */
const leastShare = 1 / 8

/** Node raises its soft limit to the hard one at its start. Infinity where the system does not say it. */
function limitOfProcess(): number {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return soft === undefined ? Infinity : Number(soft)
  } catch {
    // Only Linux has it.
    return Infinity
  }
}

/** The connections of devices that there may be at once. */
export function connectionsWithin(config: Sections, limit = limitOfProcess()): number {
  const rest = Math.max(limit - reserved(config, limit), Math.floor(limit * leastShare))
  return Math.min(config.ingest.broker.limits.max_connections, rest)
}

function reserved({ ingest, delivery, alerts }: Sections, limit: number): number {
  // An attempt, and one connection that is being closed or tried.
  const submissions = deliveryOptions(delivery).providers.reduce((sum, one) => sum + 2 * one.maxInFlight, 0)
  const receivers = alerts.receivers.length + alerts.heartbeats.length
  return (
    ownFiles +
    Math.min(Math.floor(limit / 5), tableFilesMax) +
    opsFiles +
    submissions +
    filesOfReceiver * receivers +
    filesOfBridge * ingest.bridges.length
  )
}

/** What the limit leaves for devices, where that is less than the config allows. */
export function openFilesWarnings(config: Sections, limit = limitOfProcess()): ConfigWarning[] {
  const { max_connections } = config.ingest.broker.limits
  const connections = connectionsWithin(config, limit)
  if (connections === max_connections || config.ingest.broker.listeners.length === 0) return []
  const need = max_connections + reserved(config, Infinity)
  return [
    {
      what:
        `The limit of ${limit} open files leaves ${connections} connections of devices; ` +
        `ingest.broker.limits.max_connections is ${max_connections} and needs ${need} files.`,
      act:
        `Set LimitNOFILE=${need} with \`systemctl edit telemetry-gateway\` (in a container: ulimits.nofile), ` +
        `or set max_connections to ${connections} or less.`,
    },
  ]
}
