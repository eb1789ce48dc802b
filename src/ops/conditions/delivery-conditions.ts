// delivery-conditions.ts: the conditions of endpoints, credentials, held batches and answers. Deliveries that
// stand still or are slow: slow-delivery-conditions.ts.

import { zonedTime } from '../../std/clock.ts'
import { formatDuration, plural } from '../../std/quantity.ts'
import { bounded, quote } from '../../std/quote.ts'
import { heldReasons, type HeldReason } from '../../domain/held.ts'
import type { StateFacts } from '../../domain/condition-state.ts'
import { clause, forProvider, offsetText, sentence } from '../../domain/events/event-text.ts'
import type { Cause } from '../../domain/cause.ts'
import type { ConditionTable } from './types.ts'

const hourMs = 3_600_000

type DeliveryCode =
  | 'ENDPOINT_UNAVAILABLE'
  | 'ENDPOINT_UNAUTHORIZED'
  | 'CREDENTIALS_MISSING'
  | 'CREDENTIALS_STALE'
  | 'CLOCK_OFF'
  | 'PROVIDER_UNKNOWN'
  | 'BATCH_STUCK'
  | 'BATCHES_HELD'
  | 'WRAPPER_REFUSED'
  | 'ANSWERS_INCONSISTENT'
  | 'SENDER_THREAD_LOST'

export const deliveryConditions: ConditionTable<DeliveryCode> = {
  ENDPOINT_UNAVAILABLE: {
    severity: 'error',
    stops: 'delivery',
    meaning: 'The service accepts no batches. The gateway sends one probe at a time and keeps all data.',
    act: 'Delivery resumes automatically. If this continues, ask the support of the service.',
    showsNextTry: true,
    cause: ({ provider, failures, why, requestId, act }) => ({
      key: provider,
      what: `Cannot deliver${forProvider(provider)}: ${bounded(clause(why))}. Data is kept.`,
      // Refusals and outages that an answer names are no failures in a row.
      why: `${failures === 0 ? '' : `${plural(failures, 'failure')} in a row. `}Last requestId: ${requestId ?? 'none'}.`,
      ...(act === null
        ? {}
        : { act: `${sentence(act)} Delivery resumes automatically${afterRestart(act)}.` }),
      present: failures,
    }),
  },
  ENDPOINT_UNAUTHORIZED: {
    severity: 'error',
    stops: 'delivery',
    meaning: 'The service refuses the signature, the account or the time of the requests. Data is kept.',
    act: checkAccount('each `backoff.probe_every`'),
    showsNextTry: true,
    cause: ({ provider, status, message, requestId, accessKeyId, clockOffsetMs, probeEveryMs }) => ({
      key: provider,
      act: checkAccount(`every ${formatDuration(probeEveryMs)}`),
      what: `Cannot deliver${forProvider(provider)}: the service answers ${status}. Data is kept.`,
      why:
        `The cause is one of three: the signature (access key ${accessKeyId ?? 'unknown'}), ` +
        'the account (not registered), the clock ' +
        `(${clockOffsetMs === null ? 'offset unknown' : `${offsetText(clockOffsetMs)} the service`}). ` +
        `Answer: ${quote(message)}, requestId ${requestId ?? 'none'}.`,
    }),
  },
  CREDENTIALS_MISSING: {
    severity: 'error',
    stops: 'delivery',
    meaning: 'There are no credentials to sign with. Data is kept.',
    act: 'Check delivery.credentials in the config, and that the daemon may read them.',
    showsNextTry: true,
    cause: ({ provider, why }) => ({
      key: provider,
      what: `No credentials to sign with${forProvider(provider)}. Data is kept.`,
      why: sentence(why),
    }),
  },
  CREDENTIALS_STALE: {
    severity: 'warning',
    meaning: 'The credentials cannot be refreshed. The old ones are used until they expire.',
    act: 'Check the source that delivery.credentials names. The gateway tries again automatically.',
    cause: ({ provider, why, expiresAt }) => ({
      key: provider,
      what: `Cannot refresh the credentials${forProvider(provider)}. The old ones stay in use.`,
      why: sentence(why) + (expiresAt === null ? '' : ` The old ones expire at ${zonedTime(expiresAt)}.`),
    }),
  },
  CLOCK_OFF: {
    severity: 'warning',
    meaning: 'The clock of this machine is off by a minute or more. Signatures use the time of the service.',
    act:
      'Set the clock (timedatectl, chrony). TLS fails if the clock is outside the validity period of a ' +
      'certificate. If the clock is right, tell the service, and set clocks.trust_local until it is mended: ' +
      'messages that were kept as FUTURE are then released automatically.',
    cause: ({ provider, offsetMs }) => ({
      key: provider,
      what: `The clock of this machine is ${offsetText(offsetMs)} the service.`,
      why:
        'The Date header of its answers shows it. Signatures use the time of the service, so delivery ' +
        'continues.',
    }),
  },
  PROVIDER_UNKNOWN: {
    severity: 'error',
    meaning: 'Payloads wait for a provider that is not in the config. They are kept.',
    act:
      'Add the provider to the config until its payloads are delivered. If it is there already, restart ' +
      'the gateway.',
    cause: ({ provider, payloads }) => ({
      key: provider,
      what: `Provider ${quote(provider, 64)} is not in the config. ${plural(payloads, 'payload')} kept for it.`,
      why: 'It was renamed or removed while payloads were waiting, or added since the start.',
      present: payloads,
    }),
  },
  BATCH_STUCK: {
    severity: 'warning',
    meaning:
      'Batches fail while others succeed. They are retried separately, at growing intervals, and delay ' +
      'nothing else.',
    act:
      'Run `batches list` and ask the support of the service about the batchIds. The gateway keeps trying; ' +
      '`batches split` sends the payloads under new batchIds.',
    cause: heldFor,
  },
  BATCHES_HELD: {
    severity: 'error',
    meaning:
      'Batches are not delivered because of the answers of the service to them. They delay nothing else.',
    act: 'Run `batches list`, and follow docs/delivery.md, section Held batches.',
    cause: heldFor,
  },
  WRAPPER_REFUSED: {
    severity: 'error',
    stops: 'delivery',
    meaning: 'The service refuses every batch, independent of its content. Data is kept.',
    act: checkWrapper('each `backoff.probe_every`'),
    showsNextTry: true,
    cause: ({ provider, why, requestId, probeEveryMs }) => ({
      key: provider,
      act: checkWrapper(`every ${formatDuration(probeEveryMs)}`),
      what: `Cannot deliver${forProvider(provider)}: the service refuses every batch. Data is kept.`,
      why: `${sentence(why)} Last requestId: ${requestId ?? 'none'}.`,
    }),
  },
  ANSWERS_INCONSISTENT: {
    severity: 'warning',
    meaning:
      'An answer of the service contradicts itself or the specification. Its lists are used, `failed` first.',
    act: 'Give the requestId to the support of the service.',
    quietMs: hourMs,
  },
  SENDER_THREAD_LOST: {
    severity: 'error',
    meaning:
      'The thread that sends batches ended more than once. A batch that was being sent each time is sent ' +
      'in a thread of its own from then on.',
    act: 'Keep the log and report it. Data is kept, and delivery continues.',
    quietMs: hourMs,
  },
}

function checkAccount(often: string): string {
  return `Check the credentials, and that their account is registered. The gateway sends a probe ${often}, or at once with \`probe\`.`
}

function checkWrapper(often: string): string {
  return (
    'Check delivery.base_url, delivery.mode, the provider key and recent changes of the mapping. ' +
    `The gateway sends one request ${often}, or at once with \`probe\`.`
  )
}

/** Of some options only the restart puts a change in force. */
function afterRestart(act: string): string {
  return act.includes('delivery.') ? ', or after the restart where RESTART_NEEDED names delivery' : ''
}

const askSupport = 'Ask the support of the service whether it processed the batchId (`batches list`).'

/** Also for `batches list`. */
export const heldActs: Record<HeldReason, string> = {
  repeated:
    `${askSupport} If it did, run \`batches mark-delivered\`; if not, \`batches reissue\`. ` +
    '`delivery.on_repeat` decides this for all such batches.',
  refused_repeat:
    `${askSupport} If it did, run \`batches mark-delivered\`; if not, \`batches split\` finds the payload at ` +
    'fault. `delivery.on_refused_repeat` decides this for all such batches.',
  forbidden:
    'A firewall in front of the service may refuse the content: give its operator the requestId. The gateway ' +
    'retries the same bytes; `batches split` separates the payloads.',
  stuck:
    'Ask the support of the service about the batchIds (`batches list`). The gateway keeps retrying the same ' +
    'bytes; `batches split` sends the payloads under new batchIds.',
  unlisted:
    `${askSupport} If it did, run \`batches mark-delivered\`; if not, \`batches reissue\`. The gateway keeps ` +
    'retrying the same bytes.',
  not_accepted:
    'Read the words of the service above. The gateway tries again when the service accepts something, and ' +
    'at growing intervals.',
  deferred:
    'Nothing: the gateway waits as the service asked, ten minutes at most. If this continues, ask the support of ' +
    'the service why it defers these batches.',
  incomplete_answer:
    'Ask the support of the service why its answers are so large. `batches split` sends the payloads under new ' +
    'batchIds. The gateway keeps retrying the same bytes.',
  dead_letters_full: 'Requeue or purge dead letters, or raise their limit. Then these batches continue.',
}

function heldFor(held: StateFacts['BATCHES_HELD']): Cause {
  const { provider, reason, batches, payloads, oldestAt, batchId, why, requestId } = held
  const what = `${plural(batches, 'batch', 'batches')} with ${plural(payloads, 'payload')}`
  return {
    key: `${provider}|${reason}`,
    what: `Held${forProvider(provider)}: ${what}, the oldest since ${zonedTime(oldestAt)}.`,
    why:
      `Reason ${reason}: ${heldReasons[reason]}. Latest: batch ${batchId}: ${sentence(why)}` +
      (requestId === null ? '' : ` requestId ${requestId}.`),
    act: heldActs[reason],
    // The service asked for the wait. A person has nothing to do.
    ...(reason === 'deferred' && { severity: 'warning' as const }),
    present: batches,
  }
}
