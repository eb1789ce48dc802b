// gateway-operations.ts: what an operator asks of the gateway as a whole: reload, probe, and the changes that
// were made.

import { zonedTime } from '../../std/clock.ts'
import { z } from 'zod'
import { isoTimes } from '../../std/iso-times.ts'
import { formatDuration, plural } from '../../std/quantity.ts'
import { bounded } from '../../std/quote.ts'
import { callerText, readAudit } from '../audit/audit.ts'
import { auditSchema } from '../http/answer-schemas/answer-schemas.ts'
import { probeSchema, reloadSchema } from '../http/answer-schemas/control-schemas.ts'
import { faultAnswer, ok } from '../http/json-answer.ts'
import { flag, limit, noParameters, time } from '../http/http-routing/parameters.ts'
import { operation, type Operation } from './operation.ts'

type Change = z.output<typeof auditSchema>['changes'][number]

export const gatewayOperations: readonly Operation[] = [
  operation({
    name: 'reload',
    effect: 'changes',
    summary: 'Reload the config, presets and the device table of the running daemon.',
    notes: [
      'The daemon also reloads automatically when a file changes. If a file has problems, the command ' +
        'lists them and nothing changes.',
      'A client whose user, token or certificate is withdrawn loses its connection. Where that would be more ' +
        'than half of the connected clients, or no user is left, the former ones stay in force (ACCESS_STALE).',
    ],
    actsWithoutYes: true,
    parameters: z.strictObject({
      yes: flag('Withdraws access also from most of the connected clients.'),
    }),
    means: 'They are in force.',
    schema: reloadSchema,
    async run({ values }, { reload }) {
      const report = await reload('by request', { isConfirmed: values.yes })
      return report.kind === 'refused' ? faultAnswer(422, report.fault) : ok(report)
    },
    text: ({ sources, tookMs, restartNeeded, warnings }) => [
      `The mapping is in force: ${plural(sources, 'source')}, loaded in ${formatDuration(tookMs)}.`,
      ...warnings.map((warning) => `Warning: ${warning}`),
      ...(restartNeeded.length === 0
        ? []
        : [`All other changes are in force. Restart the daemon to apply ${restartNeeded.join(', ')}.`]),
    ],
  }),
  operation({
    name: 'probe',
    effect: 'changes',
    summary: 'Retry the ingestion API now: all that waits for a back-off or a slow probe.',
    notes: [
      'Reads the credentials again first. Sends nothing if no payload waits. SIGHUP does the same.',
      'Exit status 1: an endpoint is not available.',
    ],
    parameters: noParameters,
    means: 'The state after the try.',
    schema: probeSchema,
    async run({ signal }, { probe }) {
      const { now, providers } = await probe(signal)
      // Named as in /status.
      const shown = providers.map(({ ratePerS, ...one }) => ({ ...one, payloadsPerSecond: ratePerS }))
      return ok(isoTimes({ now, providers: shown }))
    },
    text({ providers }, { now }) {
      const rows = providers.map(({ name, endpoint, nextAttemptAt, lastRequestId, inFlight }) => [
        name,
        endpoint,
        nextAttemptAt === null || endpoint === 'available'
          ? '-'
          : nextText(Date.parse(nextAttemptAt) - now, inFlight),
        lastRequestId ?? '-',
      ])
      return [
        { caption: 'providers', head: ['provider', 'endpoint', 'next attempt', 'last requestId'], rows },
        ...(areAvailable({ providers }) ? [] : ['', '`status` shows the reason.']),
      ]
    },
    isDone: areAvailable,
  }),
  operation({
    name: 'audit',
    path: '/audit',
    effect: 'lists',
    summary: 'Show the changes that operators made, newest first.',
    notes: [
      'A time is 14:03 (today), 2026-11-21T14:03, 2h (ago), or milliseconds since 1970. Without a zone it ' +
        'is one of the gateway: ops.time_zone.',
      'On the control socket the user and SUDO_USER are what the command says; over TCP the user has given a password.',
    ],
    parameters: z.strictObject({
      since: time('From this time on.'),
      until: time('Before this time.'),
      limit: limit('At most this many changes.'),
    }),
    means: 'The changes.',
    schema: auditSchema,
    async answer({ spoolPath, values: { limit: most, since, until } }) {
      const range = { ...(since !== undefined && { since }), ...(until !== undefined && { until }) }
      return ok(isoTimes(await readAudit(spoolPath, { limit: most, ...range })))
    },
    text: ({ changes, more, damaged }) => [
      ...(changes.length === 0 ? ['The audit log has no such change.'] : []),
      {
        caption: 'changes that operators made, the newest first',
        head: ['when', 'change', 'outcome', 'by', 'with', 'result'],
        rows: changes.map(changeRow),
      },
      ...(more ? ['There are more. Raise --limit, or give --until.'] : []),
      ...(damaged > 0 ? [`Lines that cannot be read: ${damaged}.`] : []),
    ],
  }),
]

function areAvailable({ providers }: { providers: readonly { endpoint: string }[] }): boolean {
  return providers.every(({ endpoint }) => endpoint === 'available')
}

function nextText(inMs: number, inFlight: number): string {
  if (inFlight > 0) return 'running'
  return inMs <= 0 ? 'with the next payload' : `in ${formatDuration(inMs)}`
}

function changeRow({ at, change, request, by, outcome, result, tookMs }: Change): string[] {
  const how = outcome === 'unknown' ? 'unknown: the process ended before it was done' : outcome
  const took = tookMs === null ? '' : ` after ${formatDuration(tookMs)}`
  const facts = Object.entries(result).map(([name, value]) => `${name} ${String(value)}`)
  return [
    zonedTime(at),
    change,
    how + took,
    callerText(by),
    bounded(request, 300),
    bounded(facts.join(', '), 500),
  ]
}
