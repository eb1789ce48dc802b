// control-conditions.ts: conditions over HTTP.
//
//   GET /conditions                                     those that were open in the last 30 days
//   POST /control/conditions/acknowledge?code=&for=7d   a person knows of it: it is not sent again until
//                                                       then, unless it gets worse or more have it
//   POST /control/conditions/unacknowledge?code=        it is sent again

import { z } from 'zod'
import { isoTime } from '../../../std/clock.ts'
import { isoTimes } from '../../../std/iso-times.ts'
import { bounded, quote } from '../../../std/quote.ts'
import { callerText } from '../../audit/audit.ts'
import { acknowledgeSchema, pastConditionsSchema } from '../answer-schemas/control-schemas.ts'
import { limit, requiredText, text } from '../http-routing/parameters.ts'
import { route, type HttpSource, type Route } from '../http-routing/route.ts'
import { badRequest, notFound, ok, type JsonAnswer } from '../json-answer.ts'
import { endOfTime } from '../../../std/time-argument.ts'
import { controlRoute, type ControlRoute } from './control-route.ts'

export const conditionsRoute: Route = route({
  method: 'GET',
  path: '/conditions',
  summary:
    'Lists the conditions that were open in the last 30 days, the newest first. /status has those that are.',
  right: 'read',
  parameters: z.strictObject({ limit: limit('At most this many.') }),
  answers: { 200: { means: 'The conditions.', schema: pastConditionsSchema } },
  answer: ({ source, values: { limit: most } }) => ok(isoTimes(source.past.past(most))),
})

const namesShown = 5

const which = {
  code: requiredText('Code of the condition.'),
  key: text('Its key, where it has one.'),
}

export const conditionRoutes: readonly ControlRoute[] = [
  controlRoute({
    name: 'conditions/acknowledge',
    alwaysPossible: true,
    summary: 'A person knows of a condition: it is not sent again for a time.',
    parameters: z.strictObject({
      ...which,
      for: text('For how long, such as 7d.'),
      until: text('Or until when: a date, or a date and time.'),
    }),
    answers: { 200: { means: 'Until when.', schema: acknowledgeSchema } },
    async answer({ source, values: { code, key = null, for: lasts, until }, caller }) {
      const untilAt = endOfTime(source.now(), { lasts, until })
      if (untilAt === null)
        return badRequest('The end of the time is missing, or past.', 'Give for=7d, or until=2026-12-24.')
      if (!source.openConditions().some((one) => one.code === code && one.key === key))
        return notOpen(source, { code, key })
      source.past.know({ code, key }, { untilAt, by: callerText(caller) })
      return ok({ code, key, untilAt: isoTime(untilAt) })
    },
  }),
  controlRoute({
    name: 'conditions/unacknowledge',
    alwaysPossible: true,
    summary: 'A condition is sent again.',
    parameters: z.strictObject(which),
    answers: { 200: { means: 'It is sent again.', schema: acknowledgeSchema } },
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
  }),
]

/** A wrong code, or a missing key, would be acknowledged, and the condition would be sent as before. */
function notOpen(source: HttpSource, of: { code: string; key: string | null }): JsonAnswer {
  const open = source.openConditions().filter(({ code }) => code === of.code)
  const names = open.slice(0, namesShown).map(nameOf).join(', ')
  return notFound(
    `${nameOf(of)} is not open.`,
    open.length === 0 ? 'No condition with this code is open.' : `With this code are open: ${names}.`,
    open.length === 0 ? 'See `status` for those that are open.' : 'Give the key of one of them.',
  )
}

function nameOf({ code, key }: { code: string; key: string | null }): string {
  return bounded(key === null ? code : `${code} with the key ${quote(key, 64)}`, 160)
}
