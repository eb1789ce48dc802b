// daemon-messages.ts: lines of messages from the daemon: its dead letters, which a spool at rest has too, and
// those that arrive (tap).

import { exportLine, selectDeadLetters, type DeadLetterQuery } from '../../dead-letters/dead-letters.ts'
import { requestDaemonLines } from '../daemon-client/daemon-client.ts'
import { findDaemon, type PlaceOptions } from '../daemon-client/find-daemon.ts'
import { fromDaemonOrSpool } from '../daemon-client/spool-access.ts'
import type { CommandIo } from '../terminal/terminal.ts'
import type { MapOptions } from './map-options.ts'

/** False ends the reading. */
type Take = (line: string) => Promise<boolean>

/** Calls `take` with each dead letter of the mapping, the oldest first. */
export async function takeDeadLetters(options: MapOptions, io: CommandIo, take: Take): Promise<void> {
  const { device, source, reason, path } = options
  const query: Pick<DeadLetterQuery, 'stage' | 'device' | 'source' | 'reason'> = {
    stage: 'mapping',
    ...(device === undefined ? {} : { device }),
    ...(source === undefined ? {} : { source }),
    ...(reason === undefined ? {} : { reason }),
  }
  const params = new URLSearchParams({ ...query })
  const request = { path: `/control/dead-letters/export?${params.toString()}`, method: 'POST' } as const
  await fromDaemonOrSpool(
    path === undefined ? placeOf(options) : { path },
    io,
    async (daemon) => {
      for await (const line of requestDaemonLines({ ...request, daemon, stop: io.stop }))
        if (!(await take(line))) return
    },
    async (spool) => {
      for await (const entry of selectDeadLetters(spool, query))
        if (!(await take(exportLine(entry).trimEnd()))) return
    },
  )
}

/** The same with each line of the tap, until the daemon or a signal ends it. */
export async function takeFromTap(options: MapOptions, io: CommandIo, take: Take): Promise<void> {
  const { device, source, topic } = options
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries({ device, source, topic }))
    if (value !== undefined) params.set(name, value)
  const daemon = await findDaemon(placeOf(options), io)
  const request = { daemon, path: `/tap?${params.toString()}`, method: 'GET', stop: io.stop } as const
  try {
    for await (const line of requestDaemonLines(request)) if (!(await take(line))) return
  } catch (error) {
    // The signal is the usual end.
    if (!io.stop.aborted) throw error
  }
}

/** --config is the mapping to try. It also names the daemon, where nothing else does. */
function placeOf({ config, socket, url }: MapOptions): PlaceOptions {
  if (socket !== undefined) return { socket }
  if (url !== undefined) return { url }
  return config === undefined ? {} : { config }
}
