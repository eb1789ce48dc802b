// config.ts: the sections `ops` and `log` of the config.

import { join } from 'node:path'
import { z } from 'zod'
import { isTimeZone } from '../std/clock.ts'
import { isLoopback } from '../std/loopback.ts'
import { parsePasswordFile } from '../std/passwords/password-file.ts'
import { parsePasswordHash, type PasswordHash } from '../std/passwords/passwords.ts'
import { quote } from '../std/quote.ts'
import { duration, filePath, pem, pemKey, secret, size } from '../std/schema.ts'
import { pemPartsProblem } from '../std/tls/pem.ts'
import { conditionCatalogue, type ConditionCode } from './conditions/condition-catalogue.ts'
import { silenceSchema } from './silence-config.ts'

/** For options that name conditions. */
export const conditionCodes = Object.keys(conditionCatalogue) as ConditionCode[]

export type HostPort = { host: string; port: number }

/** Where the daemon is; a client needs nothing else of the section. */
const placesShape = {
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
      'Address of the HTTP server: /status, /healthz, /readyz, /metrics. The default is reachable from this ' +
        'machine only. Without `users` it asks for no password, and nothing can be changed through it.',
    ),
  control_socket: filePath()
    .optional()
    .describe(
      'Path of the UNIX socket for the commands that change something. Default: `control.sock` in ' +
        '$RUNTIME_DIRECTORY, which the systemd unit sets, else `spool.path` with `.sock` behind it. At most 107 ' +
        'bytes.',
    ),
}

export const opsPlacesSchema = z.object(placesShape).prefault({})

const zoneShape = {
  time_zone: z
    .string()
    .refine(isTimeZone, {
      error: ({ input }) =>
        `must be a name of the IANA database such as Europe/Berlin, found ${quote(String(input), 64)}`,
    })
    .optional()
    .describe(
      'Time zone of what people read and write: times on the page, in alerts and in the output of commands, ' +
        'the hour of the digest, and times without a zone in requests. A name of the IANA database, such as ' +
        '`Europe/Berlin`. Default: the zone of the machine. JSON and logs have UTC.',
    ),
}

/** For commands that open the spool where no daemon runs. */
export const opsZoneSchema = z.object(zoneShape).prefault({})

export const opsSchema = z
  .strictObject({
    ...placesShape,
    allowed_hosts: z
      .array(
        z.string().regex(/^[^\s:/?#@]+$/, {
          error: 'must be a host name without a port, such as gateway.example.org',
        }),
      )
      .max(100)
      .default([])
      .describe(
        'Further host names in the addresses of requests (the header `Host`). The names of loopback, the ' +
          'name in `listen` and IP addresses are always allowed. Any other name is refused, so that a web ' +
          'page cannot read the answers through a name of its own.',
      ),
    tls: z
      .strictObject({
        cert: pem('certificate').describe('Certificate chain: the path of a PEM file, or PEM text.'),
        key: pemKey().describe('Private key: the path of a PEM file, `${file:PATH}` or `${env:NAME}`.'),
      })
      .superRefine(({ cert, key }, context) => {
        const message = pemPartsProblem({ cert, key: key.reveal() })
        if (message !== null) context.addIssue({ code: 'custom', message })
      })
      .optional()
      .describe('Serves HTTPS in place of HTTP. Required for `users` where `listen` is not loopback.'),
    users: z
      .array(
        z.strictObject({
          name: z
            .string()
            .regex(/^[^:\p{Cc}]{1,64}$/u, { error: 'must have 1 to 64 characters, without a colon' })
            .describe('User name for the login page and for HTTP Basic authentication.'),
          password_hash: secret().describe(
            'Hash of the password: `${file:/etc/...}` of a file that `telemetry-gateway passwd` wrote. It may have ' +
              'several users.',
          ),
          rights: z
            .array(z.enum(['read', 'change']))
            .min(1)
            .describe('`read`: everything that can be shown. `change`: the paths below /control.'),
        }),
      )
      .max(100)
      .default([])
      .describe(
        'Users of the HTTP server. With users, reading needs the right `read` (see `anonymous_read`), and ' +
          'changes are possible over TCP for those with the right `change`. The control socket needs no user.',
      ),
    anonymous_read: z
      .boolean()
      .optional()
      .describe(
        'Whether reading needs no user. Default: true without `users`, else false. /healthz and /readyz ' +
          'never need one.',
      ),
    login: z
      .strictObject({
        idle: duration({ minMs: 60_000, maxMs: 90 * 24 * 3_600_000 })
          .prefault('2h')
          .describe(
            'A session ends when it was not used for this long. A page that is open and shows live values uses it.',
          ),
        max_age: duration({ minMs: 60_000, maxMs: 90 * 24 * 3_600_000 })
          .prefault('12h')
          .describe('A session ends this long after the login, used or not.'),
        secure_cookie: z
          .boolean()
          .default(false)
          .describe(
            'Whether browsers send the cookie of a session over HTTPS only. Always so with `tls`. Set it where ' +
              'a proxy in front of `listen` ends TLS.',
          ),
      })
      .prefault({})
      .describe(
        'Sessions of `users` who log in with a browser. At most 20 of a user and 200 in all; beyond, the one ' +
          'that was not used for longest ends. A restart ends all of them.',
      ),
    devices: z
      .strictObject({
        max: z
          .int()
          .min(100)
          .max(1_000_000)
          .default(50_000)
          .describe(
            'Devices whose record is kept, each with some 2 KB of memory and of disk. Beyond it, a new device ' +
              'gets the place of one that has been quiet, an unlisted one never that of a listed one. Both are ' +
              'counted: gateway_device_records_evicted_total, gateway_devices_not_recorded_total.',
          ),
        messages_max_bytes: size({ minBytes: 0, maxBytes: 4 * 1024 ** 3 })
          .prefault('32MiB')
          .describe(
            'Memory for the last 20 messages of each device, which `devices show` prints with what became of ' +
              'them; up to 8 KiB a device until half of it is used, 1 KiB then. Beyond it, devices that are quiet ' +
              'for ten minutes lose theirs. They are not kept for assets with a privacy profile, nor over a ' +
              'restart. `0B` keeps none.',
          ),
        retention: duration({ minMs: 3_600_000, maxMs: 3660 * 24 * 3_600_000 })
          .prefault('90d')
          .describe(
            'How long the record of a device is kept after its last message. Records are deleted only while ' +
              'the time is known from the answers of the service. Listed devices stay in the list.',
          ),
      })
      .prefault({})
      .describe('Records of devices: what `devices` and /devices show, over restarts and reloads.'),
    ...zoneShape,
    audit_max_bytes: size({ minBytes: 64 * 1024, maxBytes: 1024 ** 3 })
      .prefault('16MiB')
      .describe(
        'Size limit of the audit log of changes (`audit` shows it), in two files below `spool.path`. At the ' +
          'limit the older file, up to a half of it, is deleted.',
      ),
    stop_deadline: duration({ minMs: 1000, maxMs: 600_000 })
      .prefault('30s')
      .describe(
        'Longest time for a stop. Running submissions get most of it and are then aborted. Their batches ' +
          'stay sealed and are sent again after the start. Two seconds later the gateway ends itself by SIGKILL, which ' +
          'loses nothing: then the disk hangs. Keep TimeoutStopSec of the systemd unit 5 s above it.',
      ),
  })
  .extend({ silence: silenceSchema })
  .prefault({})
  .superRefine(({ listen, tls, users }, context) => {
    const problem = (path: (string | number)[], message: string) =>
      context.addIssue({ code: 'custom', path, message })
    if (users.length > 0 && tls === undefined && !isLoopback(listen.host))
      problem(
        ['tls'],
        'is required: ops.users send passwords, and ops.listen can be reached from other machines',
      )
    users.forEach((user, index) => {
      const { name } = user
      if (passwordHashOf(user) === null)
        problem(
          ['users', index, 'password_hash'],
          'must be a file that `telemetry-gateway passwd` wrote, with this user',
        )
      if (users.findIndex((other) => other.name === name) < index)
        problem(['users', index, 'name'], `must be unique, found "${name}" twice`)
    })
  })

export const logSchema = z
  .strictObject({
    level: z
      .enum(['trace', 'debug', 'info', 'warn', 'error'])
      .default('info')
      .describe(
        'Lowest level of the log lines that are written. `debug` adds a line for each submission, and for each ' +
          'connection of a client and its end. `info` has refused clients, ' +
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

/** Of a hash, or of a file of `passwd` that has the user. Null: there is none. */
export function passwordHashOf({
  name,
  password_hash: text,
}: OpsConfig['users'][number]): PasswordHash | null {
  return parsePasswordHash(text.reveal()) ?? parsePasswordFile(text.reveal()).users.get(name) ?? null
}

/** sun_path of a UNIX socket has 108 bytes with the one that ends it. */
const socketPathBytesMax = 107
const socketName = 'control.sock'

type SocketPlace = Pick<OpsConfig, 'control_socket'> & { spoolPath: string; runtimeDirectory?: string }

/** Where the control socket is. `runtimeDirectory`: $RUNTIME_DIRECTORY, which may be a list. */
export function controlSocketPath({ control_socket: named, spoolPath, runtimeDirectory = '' }: SocketPlace) {
  const [folder = ''] = runtimeDirectory.split(':')
  // Beside the spool: not every program that copies a directory can copy a socket.
  return named ?? (folder === '' ? `${join(spoolPath, '.')}.sock` : join(folder, socketName))
}

/** Why no socket can be there; null where one can. */
export function socketPathProblem(path: string): string | null {
  const bytes = Buffer.byteLength(path)
  if (bytes <= socketPathBytesMax) return null
  return `is too long for the control socket ${path}: ${bytes} bytes, at most ${socketPathBytesMax}`
}

/** The base URL of an address. An address for all interfaces is reached over loopback. */
export function opsUrl({ host, port }: HostPort, scheme: 'http' | 'https' = 'http'): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return opsUrlText({ host: reachable, port }, scheme)
}

/** The same as it is configured. */
export function opsUrlText({ host, port }: HostPort, scheme: 'http' | 'https'): string {
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`
}
