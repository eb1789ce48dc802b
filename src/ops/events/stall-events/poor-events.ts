// poor-events.ts: the events of what works, and not well: answers that are late, requests and payloads that
// fail, a backlog that grows, devices whose messages give no payload or nothing new. Each is
// over where its first number is 0.

import { formatDuration, plural } from '../../../std/quantity.ts'
import { quote } from '../../../std/quote.ts'
import type { EventName, EventOf } from '../../../domain/event.ts'
import type { ProviderName } from '../../../domain/ids.ts'
import { forProvider, noKey, providerKey } from '../event-text.ts'
import type { EventTable } from '../types.ts'

type PoorEvent = Extract<
  EventName,
  | 'answers_slow'
  | 'submissions_failing'
  | 'payloads_failing'
  | 'backlog_grows'
  | `devices_${'not_mapped' | 'repeating'}`
>

const overOr = (warn: boolean) => (warn ? 'warn' : 'info')
const isProblem = ({ isMany, named }: EventOf<'devices_not_mapped'>) => isMany || named.length > 0
const share = (part: number, all: number) => `${Math.round((100 * part) / Math.max(1, all))} %`

export const poorEvents: EventTable<PoorEvent> = {
  answers_slow: {
    meaning: 'The service answers late; or it does no longer.',
    level: { oneOf: ['info', 'warn'], of: ({ answers }) => overOr(answers > 0) },
    text: (event) => (event.answers === 0 ? 'The service answers in time again.' : slowText(event)),
    repeats: providerKey,
    raises: {
      SERVICE_SLOW: (event) =>
        event.answers === 0
          ? null
          : {
              key: event.provider,
              what: slowText(event),
              why: `That is half of delivery.timeout (${formatDuration(event.timeoutMs)}) or 10 s, or more. The service is slow, or the line to it.`,
              present: event.answers,
            },
    },
    clears: { SERVICE_SLOW: ({ provider, answers }) => (answers === 0 ? provider : undefined) },
  },
  submissions_failing: {
    meaning: 'Many requests to the service fail while others succeed; or they do no longer.',
    level: { oneOf: ['info', 'warn'], of: ({ failed }) => overOr(failed > 0) },
    text: ({ provider, failed, requests }) =>
      failed === 0
        ? 'Requests to the service succeed again.'
        : `${failed} of the last ${requests} requests failed${forProvider(provider)}.`,
    repeats: providerKey,
    raises: {
      REQUESTS_FAILING: ({ provider, failed, requests }) =>
        failed === 0
          ? null
          : {
              key: provider,
              what: `${failed} of the last ${requests} requests failed${forProvider(provider)}. Others succeed.`,
              why: 'The service or the network is unreliable. `batches list` shows the last answers.',
              present: failed,
            },
    },
    clears: { REQUESTS_FAILING: ({ provider, failed }) => (failed === 0 ? provider : undefined) },
  },
  payloads_failing: {
    meaning: 'The service refuses many payloads and accepts others; or it does no longer.',
    level: { oneOf: ['info', 'warn'], of: ({ failed }) => overOr(failed > 0) },
    text: ({ failed, payloads }) =>
      failed === 0
        ? 'The service accepts most payloads again.'
        : `The service did not accept ${failed} of the last ${payloads} payloads.`,
    repeats: providerKey,
    raises: {
      PAYLOADS_FAILING: ({ provider, failed, payloads }) =>
        failed === 0
          ? null
          : {
              key: provider,
              what: `The service did not accept ${failed} of the last ${payloads} payloads${forProvider(provider)} (${share(failed, payloads)}).`,
              why: 'It listed them as failed. Each is tried again by delivery.errors, and then becomes a dead letter.',
              present: failed,
            },
    },
    clears: { PAYLOADS_FAILING: ({ provider, failed }) => (failed === 0 ? provider : undefined) },
  },
  backlog_grows: {
    meaning: 'More payloads come in than are delivered; or it is so no longer.',
    level: {
      oneOf: ['debug', 'info', 'warn'],
      of: ({ payloads, first }) => (payloads === 0 ? 'info' : first ? 'warn' : 'debug'),
    },
    text: (event) => (event.payloads === 0 ? 'The backlog does not grow any more.' : backlogText(event)),
    repeats: providerKey,
    raises: {
      BACKLOG_GROWS: (event) =>
        event.payloads === 0
          ? null
          : {
              key: event.provider,
              what: backlogText(event),
              why:
                `${event.ratePerS.toFixed(1)} payloads a second are delivered, and more come in: ` +
                `${event.grownBy} more wait than a minute ago.`,
              present: event.payloads,
            },
    },
    clears: { BACKLOG_GROWS: ({ provider, payloads }) => (payloads === 0 ? provider : undefined) },
  },
  devices_not_mapped: {
    meaning:
      'Devices send, and their messages give no payload, while those of others do; or it is so no longer.',
    level: { oneOf: ['info', 'warn'], of: (event) => overOr(isProblem(event)) },
    text: (event) =>
      event.devices === 0 ? 'The messages of all devices give payloads.' : devicesText(event),
    repeats: () => 'devices_not_mapped',
    fields: ({ named, ...fields }) => ({ ...fields, named: named.slice(0, 5) }),
    raises: {
      DEVICES_NOT_MAPPED: (event) =>
        event.devices === 0
          ? null
          : {
              what: devicesText(event),
              why: `${event.reasons}.`,
              severity: isProblem(event) ? 'warning' : 'info',
              present: event.devices,
              causes: event.named,
            },
    },
    clears: { DEVICES_NOT_MAPPED: (event) => (event.devices === 0 ? noKey() : undefined) },
  },
  devices_repeating: {
    meaning: 'Devices send the same messages again and again, and nothing new; or they do no longer.',
    level: { oneOf: ['info', 'warn'], of: ({ isMany }) => overOr(isMany) },
    text: (event) =>
      event.devices === 0 ? 'No device repeats its messages any more.' : repeatingText(event),
    repeats: () => 'devices_repeating',
    raises: {
      DEVICES_REPEATING: (event) =>
        event.devices === 0
          ? null
          : {
              what: repeatingText(event),
              why: 'Each of their last messages is a duplicate: its time and values came before.',
              severity: event.isMany ? 'warning' : 'info',
              present: event.devices,
            },
    },
    clears: { DEVICES_REPEATING: (event) => (event.devices === 0 ? noKey() : undefined) },
  },
}

function slowText({
  provider,
  medianMs,
  answers,
}: {
  provider: ProviderName
  medianMs: number
  answers: number
}) {
  return `The service answers late${forProvider(provider)}: half of the last ${answers} answers took ${formatDuration(medianMs)} or more.`
}

function backlogText({
  provider,
  payloads,
  oldestAt,
}: {
  provider: ProviderName
  payloads: number
  oldestAt: number | null
}) {
  const since = oldestAt === null ? '' : `, the oldest since ${new Date(oldestAt).toISOString()}`
  return `The backlog grows${forProvider(provider)}: ${plural(payloads, 'payload')} wait${since}.`
}

function repeatingText({ devices, sending, example }: { devices: number; sending: number; example: string }) {
  const which = `${devices} of ${plural(sending, 'device')} that send`
  return `The messages of ${which} bring nothing new, such as those of ${quote(example, 80)}.`
}

function devicesText({ devices, sending, example }: { devices: number; sending: number; example: string }) {
  const which = `${devices} of ${plural(sending, 'device')} that send`
  return `The messages of ${which} give no payload, such as those of ${quote(example, 80)}.`
}
