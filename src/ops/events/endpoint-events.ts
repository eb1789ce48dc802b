// endpoint-events.ts: whether the service takes batches, and the events of credentials and providers.

import { formatDuration, plural } from '../../std/quantity.ts'
import { bounded, quote } from '../../std/quote.ts'
import type { EventName, EventOf } from '../../domain/event.ts'
import { clause, nextTry, offsetText, forProvider, providerKey, sentence } from './event-text.ts'
import type { EventTable } from './types.ts'

type EndpointEvent = Extract<EventName, `${'endpoint' | 'probe' | 'credentials' | 'provider'}_${string}`>

type Unavailable = Omit<EventOf<'endpoint_unavailable'>, 'kind'>

export const endpointEvents: EventTable<EndpointEvent> = {
  endpoint_available: {
    meaning: 'The service accepts batches again.',
    level: 'info',
    text: ({ unavailableMs }) => `The service accepts batches again after ${formatDuration(unavailableMs)}.`,
    repeats: providerKey,
    clears: {
      ENDPOINT_UNAVAILABLE: providerKey,
      ENDPOINT_UNAUTHORIZED: providerKey,
      WRAPPER_REFUSED: providerKey,
    },
  },
  endpoint_unavailable: {
    level: 'warn',
    text: ({ why, retryInMs }) =>
      `Cannot deliver: ${bounded(clause(why))}. Data is kept. ${nextTry(retryInMs)}`,
    repeats: providerKey,
    clears: { ENDPOINT_UNAUTHORIZED: providerKey },
    raises: {
      ENDPOINT_UNAVAILABLE: unavailable,
    },
  },
  probe_failed: {
    meaning: 'A probe of an endpoint that is not available failed. The condition shows its answer.',
    level: 'debug',
    text: ({ why, retryInMs }) => `A probe failed: ${bounded(clause(why))}. ${nextTry(retryInMs)}`,
    repeats: providerKey,
    raises: { ENDPOINT_UNAVAILABLE: unavailable },
  },
  endpoint_unauthorized: {
    level: 'error',
    text: ({ status, retryInMs }) =>
      `Cannot deliver: the service answers ${status}, so signature, account or clock is wrong. ` +
      `Data is kept. ${nextTry(retryInMs)}`,
    repeats: providerKey,
    clears: { ENDPOINT_UNAVAILABLE: providerKey },
    raises: {
      ENDPOINT_UNAUTHORIZED: ({ provider, status, message, requestId, accessKeyId, clockOffsetMs }) => ({
        key: provider,
        what: `Cannot deliver${forProvider(provider)}: the service answers ${status}. Data is kept.`,
        why:
          `The cause is one of three: the signature (access key ${accessKeyId ?? 'unknown'}), ` +
          'the account (not registered), the clock ' +
          `(${clockOffsetMs === null ? 'offset unknown' : `${offsetText(clockOffsetMs)} the service`}). ` +
          `Answer: ${quote(message)}, requestId ${requestId ?? 'none'}.`,
      }),
    },
  },
  credentials_failed: {
    level: 'error',
    repeats: providerKey,
    raises: {
      CREDENTIALS_MISSING: ({ provider, why }) => ({
        key: provider,
        what: `No credentials to sign with${forProvider(provider)}. Data is kept.`,
        why: sentence(why),
      }),
    },
  },
  credentials_found: {
    meaning: 'The gateway signs with these credentials from now on.',
    level: 'info',
    text: ({ accessKeyId }) => `Signing with access key ${accessKeyId}.`,
    repeats: providerKey,
    clears: { CREDENTIALS_MISSING: providerKey },
  },
  credentials_stale: {
    level: 'warn',
    repeats: providerKey,
    raises: {
      CREDENTIALS_STALE: ({ provider, why, expiresAt }) => ({
        key: provider,
        what: `Cannot refresh the credentials${forProvider(provider)}. The old ones stay in use.`,
        why:
          sentence(why) +
          (expiresAt === null ? '' : ` The old ones expire at ${new Date(expiresAt).toISOString()}.`),
      }),
    },
  },
  credentials_refreshed: {
    meaning: 'The credentials can be refreshed again.',
    level: 'info',
    text: () => 'The credentials can be refreshed again.',
    repeats: providerKey,
    clears: { CREDENTIALS_STALE: providerKey },
  },
  provider_unknown: {
    meaning: 'Payloads wait for a provider that is not in the config; or no payload waits for it any more.',
    level: { oneOf: ['info', 'error'], of: ({ payloads }) => (payloads === 0 ? 'info' : 'error') },
    text: ({ provider, payloads }) =>
      payloads === 0
        ? `No payloads wait for the unknown provider ${quote(provider, 64)} any more.`
        : waiting(provider, payloads),
    clears: { PROVIDER_UNKNOWN: ({ provider, payloads }) => (payloads === 0 ? provider : undefined) },
    raises: {
      PROVIDER_UNKNOWN: ({ provider, payloads }) =>
        payloads === 0
          ? null
          : {
              key: provider,
              what: waiting(provider, payloads),
              why: 'It was renamed or removed while payloads were waiting, or added since the start.',
            },
    },
  },
}

function unavailable(event: Unavailable) {
  const { provider, failures, why, requestId, act } = event
  return {
    key: provider,
    what: `Cannot deliver${forProvider(provider)}: ${bounded(clause(why))}. Data is kept.`,
    // Refusals and outages that an answer names are no failures in a row.
    why: `${failures === 0 ? '' : `${plural(failures, 'failure')} in a row. `}Last requestId: ${requestId ?? 'none'}.`,
    ...(act === null ? {} : { act: `${sentence(act)} Delivery resumes automatically${afterRestart(act)}.` }),
    present: failures,
  }
}

/** Of some options only the restart puts a change in force. */
function afterRestart(act: string): string {
  return act.includes('delivery.') ? ', or after the restart where RESTART_NEEDED names delivery' : ''
}

function waiting(provider: string, payloads: number): string {
  return `Provider ${quote(provider, 64)} is not in the config. ${plural(payloads, 'payload')} kept for it.`
}
