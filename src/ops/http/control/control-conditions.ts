// control-conditions.ts: conditions over HTTP.
//
//   GET /conditions                                     those that were open in the last 30 days
//   POST /control/conditions/acknowledge?code=&for=7d   a person knows of it: it is not sent again until
//                                                       then, unless it gets worse or more have it
//   POST /control/conditions/unacknowledge?code=        it is sent again

import { z } from 'zod'
import { isoTime } from '../../../std/clock.ts'
import { isoTimes } from '../../../std/iso-times.ts'
import { callerText } from '../../audit/audit.ts'
import { acknowledgeSchema, pastConditionsSchema } from '../answer-schemas/control-schemas.ts'
import { limit, requiredText, text } from '../http-routing/parameters.ts'
import { route, type Route } from '../http-routing/route.ts'
import { badRequest, ok } from '../json-answer.ts'
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
      source.past.know({ code, key }, null)
      return ok({ code, key, untilAt: null })
    },
  }),
]
