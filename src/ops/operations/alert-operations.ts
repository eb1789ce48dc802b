// alert-operations.ts: the receivers of alerts: what each got, and a test through them.

import { zonedTime } from '../../std/clock.ts'
import { z } from 'zod'
import { isoTimes } from '../../std/iso-times.ts'
import { formatDuration } from '../../std/quantity.ts'
import { agoSince } from '../../std/text-table/text-lines.ts'
import { alertsSchema, alertTestSchema } from '../http/answer-schemas/alert-schemas.ts'
import { notFound, ok, starting } from '../http/json-answer.ts'
import { noParameters, text } from '../http/http-routing/parameters.ts'
import { operation, type Operation } from './operation.ts'

export const alertOperations: readonly Operation[] = [
  operation({
    name: 'alerts/list',
    path: '/alerts',
    effect: 'lists',
    summary: 'List the receivers of alerts: last sent, last failure, what waits.',
    parameters: noParameters,
    means: 'The receivers.',
    schema: alertsSchema,
    answer: ({ source }) => ok(isoTimes({ receivers: source.stages.alerts?.receivers() ?? [] })),
    text({ receivers }, { now }) {
      if (receivers.length === 0) return [noReceivers]
      const head = ['receiver', 'type', 'target', 'last sent', 'waiting', 'failed tries']
      const rows = receivers.map((one) => [
        one.name,
        one.type,
        one.target,
        one.lastSentAt === null ? '-' : agoSince(one.lastSentAt, now),
        one.heldBack === null
          ? String(one.waiting)
          : `${one.waiting}, until ${zonedTime(one.heldBack.untilAt)}`,
        one.failures === 0 ? '-' : `${one.failures} in a row`,
      ])
      const failing = receivers.filter(({ failures }) => failures > 0)
      return [
        { caption: 'receivers', head, rows },
        ...(failing.length > 0 ? [''] : []),
        ...failing.map(({ name, lastFailure, nextTryAt }) => {
          const wait = nextTryAt === null ? 0 : Math.max(0, Date.parse(nextTryAt) - now)
          return `${name}: ${lastFailure ?? ''}. Next try ${wait < 1000 ? 'now' : `in ${formatDuration(wait)}`}.`
        }),
      ]
    },
  }),
  operation({
    name: 'alerts/test',
    effect: 'changes',
    alwaysPossible: true,
    summary: 'Send a test through each receiver, and say what happened.',
    notes: [
      'The running daemon sends the test. Without one, the command sends it by the config of --config.',
      'Exit status 1: a receiver did not take it.',
    ],
    parameters: z.strictObject({
      receiver: text('Only through this receiver or heartbeat.', { value: 'receiver', isArgument: true }),
    }),
    means: 'What became of each.',
    schema: alertTestSchema,
    async answer({ source, values: { receiver = null }, signal }) {
      const { alerts } = source.stages
      if (!alerts) return starting()
      const tests = await alerts.test(receiver, signal)
      if (tests !== null) return ok({ tests })
      const names = alerts.receivers().map(({ name }) => name)
      const why = names.length === 0 ? 'The config has no receivers.' : `There are: ${names.join(', ')}.`
      return notFound('There is no receiver of this name.', why, 'Run `alerts` to see them.')
    },
    text: ({ tests }) =>
      tests.length === 0
        ? [noReceivers]
        : tests.flatMap((one) => [
            `${one.ok ? 'ok    ' : 'failed'} ${one.name} (${one.type} ${one.target}), ${formatDuration(one.tookMs)}`,
            `         ${one.detail}`,
            ...(one.act === null ? [] : [`         ${one.act}`]),
          ]),
    isDone: ({ tests }) => tests.every((one) => one.ok),
  }),
]

const noReceivers =
  'There are no receivers of alerts. Add some in the section `alerts` of the config: docs/alerts.md.'
