// control-alerts.ts: the receivers of alerts over HTTP.
//
//   GET /alerts                              what each receiver got, and what waits
//   POST /control/alerts/test?receiver=NAME  sends a test through one receiver, or through all

import { z } from 'zod'
import { isoTimes } from '../../../std/iso-times.ts'
import { alertsSchema, alertTestSchema } from '../answer-schemas/alert-schemas.ts'
import { notFound, ok, starting } from '../json-answer.ts'
import { noParameters, text } from '../http-routing/parameters.ts'
import { route, type Route } from '../http-routing/route.ts'
import { controlRoute, type ControlRoute } from './control-route.ts'

export const alertsRoute: Route = route({
  method: 'GET',
  path: '/alerts',
  summary: 'Lists the receivers of alerts: what each got last, and what waits.',
  right: 'read',
  parameters: noParameters,
  answers: { 200: { means: 'The receivers.', schema: alertsSchema } },
  answer: ({ source }) => ok(isoTimes({ receivers: source.stages.alerts?.receivers() ?? [] })),
})

export const alertRoutes: readonly ControlRoute[] = [
  controlRoute({
    name: 'alerts/test',
    alwaysPossible: true,
    summary: 'Sends a test through the receivers of alerts.',
    parameters: z.strictObject({ receiver: text('Only through this receiver or heartbeat.') }),
    answers: { 200: { means: 'What became of each.', schema: alertTestSchema } },
    async answer({ source, values: { receiver = null }, signal }) {
      const { alerts } = source.stages
      if (!alerts) return starting()
      const tests = await alerts.test(receiver, signal)
      if (tests !== null) return ok({ tests })
      const names = alerts.receivers().map(({ name }) => name)
      const why = names.length === 0 ? 'The config has no receivers.' : `There are: ${names.join(', ')}.`
      return notFound('There is no receiver of this name.', why, 'Run `alerts` to see them.')
    },
  }),
]
