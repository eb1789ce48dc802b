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
          message: `must be HOST:PORT with a port of 0 to 65535, such as 127.0.0.1:8080 or [::1]:8080, found "${text}"`,
        })
        return z.NEVER
      })
      .prefault('127.0.0.1:8080')
      .describe(
        'Where the daemon answers HTTP: /status, /healthz, /readyz, /metrics. It asks for no password, so it ' +
          'listens on this machine only unless you say otherwise; put a proxy with a login in front to open it.',
      ),
    stop_deadline: duration({ minMs: 1000, maxMs: 600_000 })
      .prefault('30s')
      .describe(
        'How long a stop may take. Running submissions get most of it and are then cut off; their batches stay ' +
          'sealed and go again after the start. Keep TimeoutStopSec of the systemd unit above it.',
      ),
  })
  .prefault({})

export const logSchema = z
  .strictObject({
    level: z
      .enum(['trace', 'debug', 'info', 'warn', 'error'])
      .default('info')
      .describe(
        'The least serious log line that is written. `debug` adds a line per submission, `info` is start, stop ' +
          'and changes; what loses data is `error` and is always written.',
      ),
  })
  .prefault({})

export type OpsConfig = z.output<typeof opsSchema>
export type LogConfig = z.output<typeof logSchema>

/** Parts of `127.0.0.1:8080`, `localhost:0` or `[::1]:8080`; undefined where the text is no address. */
function parseHostPort(text: string): HostPort | undefined {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/[\]]+)):(\d{1,5})$/.exec(text)
  const host = match?.[1] ?? match?.[2]
  const port = Number(match?.[3])
  if (host === undefined || !(port <= 65_535)) return undefined
  return { host, port }
}

/** The base URL of an address; an address that stands for all interfaces is asked over loopback. */
export function opsUrl({ host, port }: HostPort): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}
