// memory-limits.ts: compares the memory that a config can need with the limits of the systemd unit, where
// `check` runs beside it. The kernel slows the daemon down at MemoryHigh and ends it at MemoryMax.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { formatSize } from '../../std/quantity.ts'
import type { Config } from '../../config/config.ts'
import { willBytesMax } from '../../ingest/config.ts'

const MiB = 1024 ** 2

/** An estimate: V8, threads and LevelDB of a busy daemon, with its open commit, recent chunks and batches. */
const processBytes = 512 * MiB
/** Of an idle connection, at most (`npm run bench` measures it). */
const connectionBytes = { plain: 40 * 1024, tls: 90 * 1024 }

export function memoryNeed({ ingest }: Config): number {
  const { listeners, limits } = ingest.broker
  const each = listeners.some(({ url }) => url.secure) ? connectionBytes.tls : connectionBytes.plain
  return (
    processBytes +
    limits.max_partial_bytes +
    willBytesMax +
    limits.max_held_bytes +
    limits.max_connections * each
  )
}

/** Null where the limits are high enough, or there is no unit. `root`: of the control groups. */
export async function memoryWarning(
  config: Config,
  root = '/sys/fs/cgroup',
): Promise<{ what: string; act: string } | null> {
  const unit = 'system.slice/telemetry-gateway.service'
  const limits = await Promise.all(
    ['memory.high', 'memory.max'].map((name) => limitIn(join(root, unit, name))),
  )
  const limit = Math.min(...limits)
  const need = memoryNeed(config)
  if (need <= limit) return null
  return {
    what: `The limits of the config can need ${formatSize(need)} of memory; the unit allows ${formatSize(limit)}.`,
    act:
      'Raise MemoryHigh and MemoryMax with `systemctl edit telemetry-gateway`, or lower ' +
      'ingest.broker.limits.max_connections, max_held_bytes and max_partial_bytes.',
  }
}

async function limitIn(path: string): Promise<number> {
  const text = await readFile(path, 'utf8').catch(() => 'max')
  const limit = Number.parseInt(text, 10)
  return Number.isNaN(limit) ? Infinity : limit
}
