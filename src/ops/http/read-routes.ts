// read-routes.ts: the paths that show something: GET and HEAD.
//
//   /healthz  200 while the event loop turns. It is never 503: a full disk or a refusing service is no reason
//             for a restart. /readyz, /status and the conditions show those
//   /readyz   503 with the reason while every acknowledgement is held, and while starting or stopping; else
//             200. Never for delivery: a load balancer would take the gateway out when it is needed most
//   /verdict  ../gateway-verdict: 200 for ok and degraded, else 503
//   /status   status.ts as JSON
//   /history  ../history: columns for plots
//   /metrics  Prometheus text
//
// Lists of what the stages keep are operations (../operations).

import { z } from 'zod'
import { historySchema, historySpans } from '../history/history.ts'
import { statusSchema } from '../status-schema/status-schema.ts'
import { readySchema, verdictSchema } from './answer-schemas/answer-schemas.ts'
import { ok, type TextAnswer } from './json-answer.ts'
import { anyParameters, choice, noParameters } from './http-routing/parameters.ts'
import { route, type Route } from './http-routing/route.ts'

export const readRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/healthz',
    summary: 'Shows that the event loop runs: for liveness probes.',
    right: 'open',
    atOnce: true,
    parameters: anyParameters,
    answers: { 200: { means: 'The event loop runs.', contentType: 'text/plain; charset=utf-8' } },
    answer: () => plain('ok\n'),
  }),
  route({
    method: 'GET',
    path: '/readyz',
    summary: 'Shows whether messages are accepted: for readiness probes.',
    right: 'open',
    atOnce: true,
    parameters: anyParameters,
    answers: {
      200: { means: 'Messages are accepted.', schema: readySchema },
      503: { means: 'Every acknowledgement is held, or the gateway starts or stops.', schema: readySchema },
    },
    answer({ source }) {
      const reason = source.notReady()
      return { status: reason === null ? 200 : 503, value: { ready: reason === null, reason } }
    },
  }),
  route({
    method: 'GET',
    path: '/verdict',
    summary: 'Says in one word and one sentence whether the gateway works: for monitors.',
    right: 'read',
    parameters: anyParameters,
    answers: {
      200: { means: 'The verdict is ok or degraded.', schema: verdictSchema },
      503: { means: 'The verdict is not_delivering or not_receiving.', schema: verdictSchema },
    },
    answer: ({ source }) => source.verdict(),
  }),
  route({
    method: 'GET',
    path: '/status',
    summary: 'Shows the state: providers, lanes, totals, conditions.',
    right: 'read',
    parameters: noParameters,
    answers: { 200: { means: 'The state.', schema: statusSchema } },
    answer: ({ source }) => ok(source.status()),
  }),
  route({
    method: 'GET',
    path: '/history',
    summary: 'Shows how it went over the last hour, day or week, for plots.',
    right: 'read',
    parameters: z.strictObject({
      span: choice(
        '`hour`: every 10 s. `day`: every 2 min. `week`: every 15 min. Default: hour.',
        historySpans,
      ),
    }),
    answers: { 200: { means: 'One array for each column.', schema: historySchema } },
    answer: ({ source, values: { span = 'hour' } }) => ok(source.history(span)),
  }),
  route({
    method: 'GET',
    path: '/metrics',
    summary: 'Shows the metrics as Prometheus text.',
    right: 'read',
    parameters: anyParameters,
    answers: { 200: { means: 'The metrics.', contentType: 'text/plain; version=0.0.4; charset=utf-8' } },
    async answer({ source }) {
      const { contentType, text: body } = await source.metrics()
      return { status: 200, contentType, body }
    },
  }),
]

function plain(body: string): TextAnswer {
  return { status: 200, contentType: 'text/plain; charset=utf-8', body }
}
