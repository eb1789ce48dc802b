// config.ts: the sections `ops` and `log` of the config.

import { z } from 'zod'
import { duration } from '../std/schema.ts'

export type HostPort = { host: string; port: number }

export const opsSchema = z
  .strictObject({
    listen: z
      .string()
      .meta({ format: 'host:port', examples: ['127.0.0.1:8080', '[::1]:8080'] })
      .transform((text, context) => {
        const address = parseHostPort(text)
        if (address) return address
        context.addIssue({
          code: 'custom',
          message: `must be HOST:PORT with a port of 0 to 65535, such as 127.0.0.1:8080, found "${text}"`,
        })
        return z.NEVER
      })
      .prefault('127.0.0.1:8080')
      .describe(
        'Address of the HTTP server: /status, /healthz, /readyz, /metrics. It asks for no password, so the ' +
          'default is reachable from this machine only. To open it, put a proxy with a login in front.',
      ),
    stop_deadline: duration({ minMs: 1000, maxMs: 600_000 })
      .prefault('30s')
      .describe(
        'Longest time for a stop. Running submissions get most of it and are then aborted. Their batches ' +
          'stay sealed and are sent again after the start. Keep TimeoutStopSec of the systemd unit above it.',
      ),
  })
  .prefault({})

export const logSchema = z
  .strictObject({
    level: z
      .enum(['trace', 'debug', 'info', 'warn', 'error'])
      .default('info')
      .describe(
        'Lowest level of the log lines that are written. `debug` adds a line per submission, `info` has ' +
          'start, stop and changes. What loses data is `error` and is always written.',
      ),
  })
  .prefault({})

export type OpsConfig = z.output<typeof opsSchema>
export type LogConfig = z.output<typeof logSchema>

/** Host and port of `127.0.0.1:8080`, `localhost:0` or `[::1]:8080`; undefined for any other text. */
function parseHostPort(text: string): HostPort | undefined {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/[\]]+)):(\d{1,5})$/.exec(text)
  const host = match?.[1] ?? match?.[2]
  const port = Number(match?.[3])
  if (host === undefined || !(port <= 65_535)) return undefined
  return { host, port }
}

/** The base URL of an address. An address for all interfaces is reached over loopback. */
export function opsUrl({ host, port }: HostPort): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}
