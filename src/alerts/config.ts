// config.ts: the section `alerts` of the config.

import { z } from 'zod'
import { readUrl } from '../std/given-url/given-url.ts'
import { validateHeaderName } from '../std/node-http.ts'
import { isLoopback } from '../std/loopback.ts'
import { duration, pem, secret } from '../std/schema.ts'
import { Secret } from '../std/secret.ts'
import { pemPartsProblem } from '../std/tls/pem.ts'
import { conditionCodes } from '../ops/config.ts'

const minuteMs = 60_000
const dayMs = 86_400_000

/** In `conditions` and `except`: an alert about the verdict itself. */
export const verdictCode = 'VERDICT'

const name = z
  .string()
  .regex(/^[A-Za-z0-9][\w.-]{0,63}$/, { error: 'must have 1 to 64 letters, digits, "_", "-" or "."' })
  .describe('Its name in status, metrics, conditions and in `alerts test`.')

const codes = z
  .array(z.enum([verdictCode, ...conditionCodes]))
  .min(1)
  .max(200)

const timeOfDay = z
  .string()
  .regex(/^([01]\d|2[0-3]):[0-5]\d$/, { error: 'must be a time such as 07:00' })
  .meta({ format: 'HH:MM', examples: ['07:00'] })
  .transform((text) => Number(text.slice(0, 2)) * 60 + Number(text.slice(3)))

/** Common to all receivers. */
const receiverShape = {
  name,
  from: z
    .enum(['warning', 'error', 'critical'])
    .default('warning')
    .describe('Lowest severity of the conditions that it gets.'),
  conditions: codes
    .optional()
    .describe(
      'Only these conditions. `VERDICT` is the verdict itself: the gateway receives nothing or delivers nothing for ' +
        'more than a minute. Default: all.',
    ),
  except: codes.optional().describe('Not these conditions.'),
  repeat: duration({ minMs: 10 * minuteMs, maxMs: 366 * dayMs })
    .prefault('24h')
    .describe('A condition that is still raised is sent again after this time.'),
  digest: timeOfDay
    .optional()
    .describe(
      'Local time of the machine at which it gets a summary of the day: all open conditions, with the devices that are ' +
        'silent. Default: none.',
    ),
  max_per_hour: z
    .int()
    .min(2)
    .max(1000)
    .default(12)
    .describe(
      'Alerts within an hour, retries not counted. A third of them is kept for conditions that no alert of the last ' +
        'hour has, and as many more for critical conditions and the verdict, twice as many for those that are new. At the ' +
        'limit, changes wait, and one alert says which, and until when. The next one has what changed in the end, and how many changes it leaves out.',
    ),
}

const url = (what: string) =>
  z
    .string()
    .meta({ format: 'url', examples: ['${file:/etc/telemetry-gateway/chat-url}'] })
    .check(({ value, issues }) => {
      const problem = /[\s\p{Cc}]/u.test(value)
        ? 'must have no white space'
        : readUrl(value, ['http:', 'https:'])
      if (typeof problem === 'string') issues.push({ code: 'custom', message: problem, input: value })
    })
    .transform((text) => new Secret(text))
    .describe(`${what} It is shown without user, path and query, because these may be secret.`)

const ca = pem('certificate')
  .superRefine((text, context) => {
    const message = pemPartsProblem({ ca: text })
    if (message !== null) context.addIssue({ code: 'custom', message })
  })
  .optional()
  .describe(
    'Authorities that sign its certificate: the path of a PEM file, or PEM text. They replace the public ' +
      'authorities.',
  )

const headers = z
  .record(
    z.string().refine(isHeaderName, { error: 'must be the name of a header that the gateway does not set' }),
    secret()
      .refine((value) => /^[\t\x20-\x7e]*$/.test(value.reveal()), { error: 'must be printable ASCII' })
      .describe('Value of the header, only as `${env:NAME}` or `${file:PATH}`.'),
  )
  .optional()
  .describe('Further headers of the request, such as `Authorization`. Their values are secrets.')

const proxy = z
  .enum(['delivery', 'none'])
  .default('delivery')
  .describe(
    '`delivery`: through the proxy of `delivery.proxy`. A receiver on this machine never uses a proxy.',
  )

const timeout = (standard: string) =>
  duration({ minMs: 100, maxMs: 5 * minuteMs })
    .prefault(standard)
    .describe('Longest time for one try. A try that takes longer is ended, and counts as failed.')

const webhook = z.strictObject({
  type: z.literal('webhook').describe('An HTTP request with the alert.'),
  ...receiverShape,
  url: url('Where the request goes, usually `${file:PATH}`.'),
  body: z
    .enum(['json', 'chat', 'text'])
    .default('json')
    .describe(
      '`json`: the documented body. `chat`: `{"text": "..."}`, as chat servers want it. `text`: plain text.',
    ),
  secret: secret()
    .optional()
    .describe('Signs each request by HMAC-SHA256. Without it, requests are not signed.'),
  headers,
  ca,
  proxy,
  timeout: timeout('10s'),
})

const address = z
  .string()
  .max(254)
  .regex(/^[^\s@<>,;:"()[\]\\]+@[^\s@<>,;:"()[\]\\]+$/, {
    error: 'must be an address such as depot@example.com',
  })

const email = z.strictObject({
  type: z.literal('email').describe('A mail through an SMTP relay.'),
  ...receiverShape,
  host: z
    .string()
    .regex(/^[\w.:-]{1,253}$/, { error: 'must be a host name or an address, without a port' })
    .describe('SMTP relay.'),
  port: z
    .int()
    .min(1)
    .max(65_535)
    .optional()
    .describe('Its port. Default: 587 for `starttls`, 465 for `tls`, 25 for `none`.'),
  security: z
    .enum(['starttls', 'tls', 'none'])
    .default('starttls')
    .describe(
      '`starttls`: the relay must offer STARTTLS. `tls`: TLS from the first byte. `none`: no encryption, for a ' +
        'relay on this machine.',
    ),
  user: z.string().min(1).max(256).optional().describe('User at the relay.'),
  password: secret().optional().describe('Password at the relay.'),
  sender: address.describe('Address that the mail comes from.'),
  recipients: z.array(address).min(1).max(50).describe('Addresses that the mail goes to.'),
  ca,
  timeout: timeout('30s'),
})

const command = z.strictObject({
  type: z.literal('command').describe('A program on this machine.'),
  ...receiverShape,
  command: z
    .array(
      z
        .string()
        .max(4096)
        .refine((word) => !word.includes('\0'), { error: 'must have no NUL' }),
    )
    .min(1)
    .max(100)
    .refine(([path = '']) => path.startsWith('/'), {
      error: 'must begin with an absolute path',
    })
    .describe(
      'Program and arguments. It runs without a shell, and gets the alert as JSON on stdin. Exit status 0: the alert ' +
        'is sent.',
    ),
  timeout: timeout('30s'),
})

const heartbeat = z.strictObject({
  name,
  url: url('Requested as long as the gateway is healthy, usually `${file:PATH}`.'),
  every: duration({ minMs: 10_000, maxMs: dayMs })
    .prefault('5m')
    .describe('Time between two requests. The monitor must wait for at least twice this time.'),
  unhealthy_url: url('Requested in place of `url` while the gateway is not healthy.')
    .optional()
    .describe('Requested in place of `url` while the gateway is not healthy. Default: no request then.'),
  healthy: z
    .enum(['ok', 'degraded'])
    .default('degraded')
    .describe('Worst verdict that is healthy. `degraded`: receiving and delivering, with problems.'),
  method: z.enum(['POST', 'GET', 'HEAD']).default('POST').describe('`POST` has the verdict as its body.'),
  headers,
  ca,
  proxy,
  timeout: timeout('10s'),
})

export const alertsSchema = z
  .strictObject({
    gateway: z
      .string()
      .regex(/^[^\p{Cc}]{1,64}$/u, { error: 'must have 1 to 64 characters, without control characters' })
      .optional()
      .describe('Name of this gateway in alerts. Default: the name of the machine.'),
    page: z
      .url({ protocol: /^https?$/, error: 'must be an http or https URL' })
      .max(500)
      .optional()
      .describe('Address at which persons open the page of this gateway. Alerts have it as a link.'),
    wait: duration({ minMs: 0, maxMs: 10 * minuteMs })
      .prefault('10s')
      .describe(
        'How long changes wait for others, so that they become one alert. A condition that is raised and cleared ' +
          'within this time is not sent.',
      ),
    receivers: z
      .array(z.discriminatedUnion('type', [webhook, email, command]))
      .max(32)
      .default([])
      .describe('Who gets alerts. Each receiver works on its own: one that hangs delays no other.'),
    heartbeats: z
      .array(heartbeat)
      .max(16)
      .default([])
      .describe('Monitors that get a sign of life, and call a person when it stays out.'),
  })
  .prefault({})
  .superRefine(({ receivers, heartbeats }, context) => {
    const problem = (path: (string | number)[], message: string) =>
      context.addIssue({ code: 'custom', path, message })
    const names = new Set<string>()
    for (const [list, members] of Object.entries({ receivers, heartbeats }))
      for (const [index, one] of members.entries()) {
        if (names.has(one.name)) problem([list, index, 'name'], `must be unique, found "${one.name}" twice`)
        names.add(one.name)
      }
    for (const [index, one] of receivers.entries()) {
      if (one.type !== 'email') continue
      const at = ['receivers', index]
      if ((one.user === undefined) !== (one.password === undefined))
        problem(
          [...at, one.user === undefined ? 'password' : 'user'],
          'must have user and password, or none of them',
        )
      else if (one.user !== undefined && one.security === 'none' && !isLoopback(one.host))
        problem([...at, 'security'], 'must be starttls or tls: the password would be sent without encryption')
    }
  })
  .describe('Alerts that the daemon sends itself, for depots without a monitoring system.')

export type AlertsConfig = z.output<typeof alertsSchema>
export type ReceiverConfig = AlertsConfig['receivers'][number]
export type HeartbeatConfig = AlertsConfig['heartbeats'][number]

/** Set by the gateway or by the protocol. */
const ownHeaders =
  /^(host|content-.*|transfer-encoding|connection|upgrade|expect|trailer|te|gateway-.*|keep-alive)$/i

function isHeaderName(text: string): boolean {
  try {
    validateHeaderName(text)
    return !ownHeaders.test(text)
  } catch {
    return false
  }
}

/** What is valid and a person should know. */
export function alertWarnings({ receivers, heartbeats }: AlertsConfig): { what: string; act: string }[] {
  const warnings: { what: string; act: string }[] = []
  const overHttp = [...receivers, ...heartbeats].filter((one) => {
    if (!('url' in one)) return false
    const { protocol, hostname } = new URL(one.url.reveal())
    return protocol === 'http:' && !isLoopback(hostname)
  })
  for (const { name: receiver } of overHttp)
    warnings.push({
      what: `The alerts for "${receiver}" are sent without encryption.`,
      act: 'Use https:// in its url.',
    })
  for (const one of receivers)
    if (one.type === 'email' && one.security === 'none' && !isLoopback(one.host))
      warnings.push({
        what: `The mail for "${one.name}" goes to ${one.host} without encryption.`,
        act: 'Set `security` to starttls or tls.',
      })
  return warnings
}
