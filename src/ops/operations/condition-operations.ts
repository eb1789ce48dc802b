// condition-operations.ts: conditions that were open, and those that a person knows of: they are not sent
// again until then, unless they get worse or more have them.

import { z } from 'zod'
import { isoTime, zonedTime } from '../../std/clock.ts'
import { isoTimes } from '../../std/iso-times.ts'
import { formatDuration } from '../../std/quantity.ts'
import { bounded, quote } from '../../std/quote.ts'
import { endOfTime } from '../../std/time-argument.ts'
import { callerText } from '../audit/audit.ts'
import { acknowledgeSchema, pastConditionsSchema } from '../http/answer-schemas/control-schemas.ts'
import { limit, requiredText, text } from '../http/http-routing/parameters.ts'
import type { HttpSource } from '../http/http-routing/route.ts'
import { notFound, ok, problem, type JsonAnswer } from '../http/json-answer.ts'
import { operation, type Operation, type Refusal } from './operation.ts'

const namesShown = 5
const ends = { stop: 'the gateway stopped', spool_lost: 'the spool was lost' }

const which = {
  code: requiredText('Code of the condition, as `status` shows it.', { value: 'code', isArgument: true }),
  key: text('Its key, where it has one.', { value: 'key' }),
}

/** Parameters of what lasts until a time that a person gives. */
export const untilWhen = {
  for: text('For how long, such as 7d.', { value: 'time' }),
  until: text('Or until when: a date, or a date and time.', { value: 'date' }),
}

/** Without an end, what is forgotten would never be missed. */
export const noEnd: Refusal = {
  what: 'The end of the time is missing, or past.',
  why: 'Give --for or --until, over HTTP `for` or `until`.',
  act: 'For a week: for 7d. Until a day: until 2026-12-24.',
}

export function endRefused(values: { for?: string | undefined; until?: string | undefined }): Refusal | null {
  return (values.for === undefined) === (values.until === undefined) ? noEnd : null
}

export const conditionOperations: readonly Operation[] = [
  operation({
    name: 'conditions/list',
    path: '/conditions',
    effect: 'lists',
    summary:
      'List the conditions that were open in the last 30 days, newest first. `status` shows those that are.',
    parameters: z.strictObject({ limit: limit('At most this many.') }),
    means: 'The conditions.',
    schema: pastConditionsSchema,
    answer: ({ source, values: { limit: most } }) => ok(isoTimes(source.past.past(most))),
    text({ conditions, more }) {
      if (conditions.length === 0) return ['No condition was cleared in the last 30 days.']
      const lines = conditions.flatMap(({ code, key, severity, since, clearedAt, interrupted, what }) => {
        const lastedMs = Math.max(0, Date.parse(clearedAt ?? '') - Date.parse(since ?? ''))
        return [
          `${zonedTime(since ?? '')}  ${severity} ${code}${key === null ? '' : ` ${key}`}, for ${formatDuration(lastedMs)}${interrupted === null ? '' : `, until ${ends[interrupted]}`}`,
          `  ${what}`,
        ]
      })
      return [...lines, ...(more ? ['There are more. Raise --limit.'] : [])]
    },
  }),
  operation({
    name: 'conditions/acknowledge',
    effect: 'changes',
    alwaysPossible: true,
    summary: 'Say that you know of a condition: it is not sent again for a time.',
    notes: [
      'It stays open, and is sent where it gets worse, something else has it, too, or it is over.',
      'What happened, such as damage, is over without --for and --until. The next time opens it again.',
    ],
    parameters: z.strictObject({ ...which, ...untilWhen }),
    means: 'Until when.',
    schema: acknowledgeSchema,
    refuses: ({ for: lasts, until }) => (lasts !== undefined && until !== undefined ? noEnd : null),
    async answer({ source, values: { code, key = null, for: lasts, until }, caller }) {
      const now = source.ourNow()
      if (!source.openConditions().some((one) => one.code === code && one.key === key))
        return notOpen(source, { code, key })
      if (lasts === undefined && until === undefined && source.endCondition({ code, key })) {
        source.past.know({ code, key }, null)
        return ok({ code, key, untilAt: null })
      }
      const untilAt = endOfTime(now, { lasts, until })
      if (untilAt === null) return problem(400, 'REQUEST_INVALID', noEnd)
      const lastsMs = lasts === undefined ? null : untilAt - now
      source.past.know({ code, key }, { untilAt, by: callerText(caller), lastsMs })
      return ok({ code, key, untilAt: isoTime(untilAt) })
    },
    text: ({ code, untilAt }) => [
      untilAt === null ? `${code} is over.` : `${code} is not sent again until ${zonedTime(untilAt)}.`,
    ],
  }),
  operation({
    name: 'conditions/unacknowledge',
    effect: 'changes',
    alwaysPossible: true,
    summary: 'Send a condition again that was acknowledged.',
    parameters: z.strictObject(which),
    means: 'It is sent again.',
    schema: acknowledgeSchema,
    async answer({ source, values: { code, key = null } }) {
      if (source.past.known({ code, key }) === null)
        return notFound(
          `${nameOf({ code, key })} is not acknowledged.`,
          'It was never acknowledged, or the time of the acknowledgement is over.',
          'See `status`, which says who acknowledged what, and `--key`.',
        )
      source.past.know({ code, key }, null)
      return ok({ code, key, untilAt: null })
    },
    text: ({ code }) => [`${code} is sent again.`],
  }),
]

/** A wrong code, or a missing key, would be acknowledged, and the condition would be sent as before. */
function notOpen(source: HttpSource, of: { code: string; key: string | null }): JsonAnswer {
  const open = source.openConditions().filter(({ code }) => code === of.code)
  const names = open.slice(0, namesShown).map(nameOf).join(', ')
  const needsKey = of.key === null && open.length > 0
  return notFound(
    needsKey ? `${of.code} needs its key.` : `${nameOf(of)} is not open.`,
    open.length === 0 ? 'No condition with this code is open.' : `With this code are open: ${names}.`,
    actOf(open[0]),
  )
}

function actOf(open: { key: string | null } | undefined): string {
  if (open === undefined) return 'See `status` for those that are open.'
  if (open.key === null) return 'Leave the key out.'
  return `Give the key as it is printed, over HTTP as \`key\`: \`--key ${quote(open.key, 64)}\`.`
}

function nameOf({ code, key }: { code: string; key: string | null }): string {
  return bounded(key === null ? code : `${code} with the key ${quote(key, 64)}`, 160)
}
