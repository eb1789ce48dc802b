// condition-catalogue.ts: every condition with its severity, meaning and what to do. The codes are API.
//
//   spool-conditions.ts    those of the spool and its disk
//   slow-delivery-conditions.ts  those of a delivery that works, and not well
//   http-conditions.ts     those of the HTTP server
//   alert-conditions.ts    those of alerts
//   client-conditions.ts   those of clients and their connections
//   gateway-conditions.ts  those of the gateway as a whole
//   message-source-conditions.ts  those of bridges
//
// The event that raises a condition may replace `meaning` and `act` by more exact texts.
// The documentation is generated from this table. Which event raises and clears a condition: ops/events.

import { alertConditions } from './alert-conditions.ts'
import { clientConditions } from './client-conditions.ts'
import { gatewayConditions } from './gateway-conditions.ts'
import { httpConditions } from './http-conditions.ts'
import { messageSourceConditions } from './message-source-conditions.ts'
import { slowDeliveryConditions } from './slow-delivery-conditions.ts'
import { spoolConditions } from './spool-conditions.ts'

export const severities = ['info', 'warning', 'error', 'critical'] as const
export type Severity = (typeof severities)[number]

type ConditionSpec = {
  severity: Severity
  meaning: string
  act: string
  /** The verdict follows from it: no message is acknowledged, or nothing is delivered (gateway-verdict). */
  stops?: 'receiving' | 'delivery'
  /** Where payloads wait and none is accepted, the verdict names it as the likely cause. */
  delays?: true
  /** /status adds to `what` when delivery tries again. */
  showsNextTry?: true
  /** The condition clears automatically when it was not raised again for this long. */
  quietMs?: number
}

const hourMs = 3_600_000
const dayMs = 86_400_000

export const conditionCatalogue = {
  // delivery
  ENDPOINT_UNAVAILABLE: {
    severity: 'error',
    stops: 'delivery',
    meaning: 'The service accepts no batches. The gateway sends one probe at a time and keeps all data.',
    act: 'Delivery resumes automatically. If this continues, ask the support of the service.',
    showsNextTry: true,
  },
  ENDPOINT_UNAUTHORIZED: {
    severity: 'error',
    stops: 'delivery',
    meaning: 'The service refuses the signature, the account or the time of the requests. Data is kept.',
    act:
      'Check the credentials, and that their account is registered. The gateway sends a probe every ten ' +
      'minutes.',
    showsNextTry: true,
  },
  CREDENTIALS_MISSING: {
    severity: 'error',
    stops: 'delivery',
    meaning: 'There are no credentials to sign with. Data is kept.',
    act: 'Check delivery.credentials in the config, and that the daemon may read them.',
    showsNextTry: true,
  },
  CREDENTIALS_STALE: {
    severity: 'warning',
    meaning: 'The credentials cannot be refreshed. The old ones are used until they expire.',
    act: 'Check the source that delivery.credentials names. The gateway tries again automatically.',
  },
  CLOCK_OFF: {
    severity: 'warning',
    meaning: 'The clock of this machine is off by a minute or more. Signatures use the time of the service.',
    act:
      'Set the clock (timedatectl, chrony). TLS fails if the clock is outside the validity period of a ' +
      'certificate. If the clock is right, tell the service, and set clocks.trust_local until it is mended: ' +
      'messages that were kept as FUTURE are then released automatically.',
  },
  PROVIDER_UNKNOWN: {
    severity: 'error',
    meaning: 'Payloads wait for a provider that is not in the config. They are kept.',
    act:
      'Add the provider to the config until its payloads are delivered. If it is there already, restart ' +
      'the gateway.',
  },
  BATCH_STUCK: {
    severity: 'warning',
    meaning:
      'Batches fail while others succeed. They are retried separately, at growing intervals, and delay ' +
      'nothing else.',
    act:
      'Run `batches list` and ask the support of the service about the batchIds. The gateway keeps trying; ' +
      '`batches split` sends the payloads under new batchIds.',
  },
  BATCHES_HELD: {
    severity: 'error',
    meaning:
      'Batches are not delivered because of the answers of the service to them. They delay nothing else.',
    act: 'Run `batches list`, and follow docs/delivery.md, section Held batches.',
  },
  WRAPPER_REFUSED: {
    severity: 'error',
    stops: 'delivery',
    meaning: 'The service refuses every batch, independent of its content. Data is kept.',
    act:
      'Check delivery.base_url, delivery.mode, the provider key and recent changes of the mapping. ' +
      'The gateway sends one request every ten minutes, or at once with `probe`.',
    showsNextTry: true,
  },
  NOTHING_ACCEPTED: {
    severity: 'error',
    stops: 'delivery',
    meaning: 'The service answers 200 and accepts nothing: it lists every payload as failed.',
    act:
      'Correct what the service names: the mapping, the device table, or the registration of the assets. ' +
      'Payloads are retried by delivery.errors, then they become dead letters, which can be requeued.',
  },
  SERVICE_HANGING: {
    severity: 'warning',
    delays: true,
    meaning: 'The service accepts requests and does not answer, or answers much later than before.',
    act:
      'Ask the support of the service. A request without an answer ends after delivery.timeout, and the ' +
      'same bytes are sent again.',
  },
  ...slowDeliveryConditions,
  DELIVERY_STALLED: {
    severity: 'error',
    stops: 'delivery',
    meaning: 'Batches are due, the endpoint is available, and nothing is delivered. Data is kept.',
    act: 'The gateway tries again automatically. `probe` tries again now.',
  },
  RATE_LIMITED: {
    severity: 'info',
    delays: true,
    meaning: 'Batches wait because of delivery.limits.',
    act: 'Nothing if the limit is intended. If not, raise or remove delivery.limits.',
  },
  RETRY_AFTER: {
    severity: 'warning',
    delays: true,
    meaning:
      'The service asked for a wait before the next request (Retry-After). The gateway waits at most 10 min.',
    act: 'Wait. `probe` tries again now. If the wait is much too long, ask the support of the service.',
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

  // dead letters and what is lost
  DEAD_LETTERS: {
    severity: 'error',
    meaning:
      'Messages or payloads became dead letters since the start of the gateway, and some are not ' +
      'requeued yet.',
    act:
      'Run `dead-letters list` to see the causes. Correct the cause, then requeue. Dead letters are ' +
      'kept whole.',
  },
  DEAD_LETTERS_FULL: {
    severity: 'critical',
    meaning:
      'The dead letters reached their limit. Messages that cannot be mapped get no acknowledgement; ' +
      'senders keep them.',
    act:
      'Run `dead-letters list`. Correct the cause and requeue the dead letters, or export and purge ' +
      'them.',
  },
  DEAD_LETTERS_PURGED: {
    severity: 'error',
    meaning: 'Dead letters were deleted, by a command or by age. Their data is lost.',
    act: 'Nothing if this was intended. If not, raise or remove spool.dead_letters.retention.',
    quietMs: dayMs,
  },
  MESSAGES_EVICTED: {
    severity: 'error',
    meaning:
      'A store of kept messages reached its limit, and its on_full is `drop_oldest`: the oldest messages of ' +
      'the device or client with the most were dropped. Their data is lost.',
    act:
      'See the largest shares in the condition, and `quarantine list` or `dead-letters list`. List the devices, ' +
      'refuse the clients, correct the cause, or raise the limit (section spool).',
    quietMs: hourMs,
  },
  MESSAGES_DROPPED: {
    severity: 'error',
    meaning: 'QoS 0 messages were dropped. Their data is lost.',
    act:
      'Configure the devices to publish with QoS 1. They then keep messages until the gateway ' +
      'acknowledges them.',
    quietMs: hourMs,
  },

  ...spoolConditions,

  // ingest and mapping
  LISTENER_FAILED: {
    severity: 'critical',
    meaning: 'Devices cannot connect to one of the listeners.',
    act: 'See the error in the condition.',
  },
  ...clientConditions,
  ...messageSourceConditions,
  ...gatewayConditions,
  MAPPING_STALE: {
    severity: 'error',
    meaning: 'The changed config or device table has errors. The previous mapping stays in force.',
    act: 'Correct the listed errors. The gateway reads the files again as soon as they change.',
  },
  MODEL_UNKNOWN: {
    severity: 'warning',
    meaning: 'Some devices have no known model. Fields that depend on the model are omitted.',
    act:
      'Fill in the column `model` of the device table, or set `model` of the source if all its devices ' +
      'have the same model.',
  },
  VALUES_WITHHELD: {
    severity: 'warning',
    meaning: 'Most values of a field of some devices are not plausible. They are not sent.',
    act:
      'See `/devices/KEY` on ops.listen: it lists what was omitted, and the last value. Check path, unit and scale of the field in the ' +
      'source with `map --explain`, and the wiring of the device. If the values are right, set `plausibility` of ' +
      'the source. After a replaced unit, run `devices forget KEY`.',
  },
  FIELD_LOST: {
    severity: 'warning',
    meaning:
      'A field that the devices of a source had is in none of their messages any more: since the mapping was ' +
      'changed, or since they name it otherwise.',
    act:
      'Correct the path of the field in `map` of the source (`map --explain` shows what a message has) and reload. ' +
      'Then `dead-letters remap` sends the values that are missing, and none twice. Where the devices ' +
      'do without the field, remove it from `map`.',
  },
  POSITIONS_SWAPPED: {
    severity: 'warning',
    meaning: 'The latitude and longitude of some devices look swapped. They are sent as they are.',
    act:
      'Check the paths of `latitude` and `longitude` in the source, or the settings of the device. If the device ' +
      'really is where it says, nothing needs to be done.',
  },
  CLOCK_SUSPECT: {
    severity: 'error',
    meaning: 'Most devices are off by the same time, so the clock of this machine is probably wrong.',
    act: 'Check the clock (`timedatectl`). If it is right, find out what the devices have in common.',
  },
  DEVICES_HOURS_OFF: {
    severity: 'warning',
    meaning: 'The clocks of devices are off by whole hours. What is behind is delivered with these times.',
    act:
      'Set the time zone of the devices to UTC, or `zone` in `map.time` of their source where the time has no ' +
      'zone of its own. Where it says UTC and is local, add `shift`, such as `shift: 2h` for clocks that are 2 h behind.',
  },
  CLOCK_UNKNOWN: {
    severity: 'warning',
    meaning: 'It is not known whether the clock of this machine is right. Device times are not checked.',
    act:
      'Let the operating system synchronise the clock (timedatectl, chrony). If it is kept right in another ' +
      'way, set clocks.trust_local. The time of the service is used as soon as it answers.',
  },
  CLOCK_STEPPED: {
    severity: 'warning',
    meaning:
      'The clock of this machine was set while the gateway ran. Messages that were quarantined because it ' +
      'was behind are released automatically.',
    act: 'Find out why the clock was wrong. Let one program synchronise it (timedatectl, chrony).',
    quietMs: hourMs,
  },
  ...httpConditions,
  ...alertConditions,

  // ledger: nothing is late or lost by these
  LEDGER_UNAVAILABLE: {
    severity: 'warning',
    meaning: 'The ledger cannot be written or read. Delivery is not affected.',
    act: 'See the error in the condition.',
  },
  LEDGER_SET_ASIDE: {
    severity: 'warning',
    meaning:
      'Records of the ledger are damaged. Their payloads are missing from the ledger. Delivery is not ' +
      'affected.',
    act: 'Check the disk and the memory of this machine.',
    quietMs: dayMs,
  },
} as const satisfies Record<string, ConditionSpec>

export type ConditionCode = keyof typeof conditionCatalogue

export function specOf(code: ConditionCode): ConditionSpec {
  return conditionCatalogue[code]
}
