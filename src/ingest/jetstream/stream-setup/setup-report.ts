// setup-report.ts: what of NATS would lose, strand or delay messages, as conditions of the bridge: one of
// each kind, with the first finding in words, until there is none.

import type { Clock } from '../../../std/clock.ts'
import type { SourceRisk } from '../../../domain/condition-state.ts'
import type { MessageRefusal } from '../../types.ts'
import { apiCode, natsFault, notFound } from '../nats-faults.ts'
import { durableName } from '../nats-subjects.ts'
import { parkingName } from '../jetstream-parking/parking-streams.ts'
import { SourceRisks } from '../../message-sources/source-risks.ts'
import type { CustodyQueue } from '../../message-sources/types.ts'
import type { MappingFound } from './mapping-check.ts'
import { addCommand, type SetupFinding } from './stream-setup.ts'
import { mqttStream, type JetStreamOptions } from '../types.ts'

export type SetupReport = {
  stream(findings: readonly SetupFinding[]): void
  durable(partition: number, finding: SetupFinding | null): void
  missing(partition: number, isMissing: boolean): void
  isMissingDurable(error: unknown): boolean
  /**
   * It was not there and was created. `wasThere`: before, while the gateway ran; else devices had published
   * before.
   */
  created(partition: number, wasThere: boolean): void
  /** Of custody `delivered`. */
  parking(findings: { missing: readonly SetupFinding[]; different: readonly SetupFinding[] }): void
  /** Of custody, too: it was deleted while the gateway ran. */
  parkingCreated(queue: CustodyQueue): void
  mapping(found: MappingFound): void
  /** Number of partitions of the account; null: not known. */
  mapped(): number | null
  /** Durables beyond the number of partitions. */
  left(finding: SetupFinding | null): void
  mixed(partition: number, finding: SetupFinding | null): void
  nameTaken(isTaken: boolean): void
  otherNumber(other: { member: string; partitions: number } | null): void
  /** A request failed, and is tried again. */
  failed(error: unknown): void
  /** A partition takes messages. */
  works(): void
  refusedMessage(refusal: MessageRefusal): void
  readonly found: SourceRisks
}

/** A durable that was created is in use since: what remains to be done is to look for the cause. */
const createdForMs = 3_600_000
/** An election takes less. */
const failingAfterMs = 20_000

export function createSetupReport({ clock }: { clock: Clock }, options: JetStreamOptions): SetupReport {
  const { member: clientId, stream } = options
  const found = new SourceRisks({ clock }, options.name)
  let failingSinceMs: number | null = null
  let mapped: number | null = null

  function report(risk: SourceRisk, about: string, finding: SetupFinding | null): void {
    found.set(risk, about, finding === null ? null : { clientId, ...finding })
  }

  function reportAll(risk: SourceRisk, findings: readonly SetupFinding[]): void {
    found.setAll(risk, new Map(findings.map((finding) => [finding.detail, { clientId, ...finding }])))
  }

  const nameOf = (partition: number) => durableName(options, partition)

  return {
    stream: (findings) => reportAll('stream_settings', findings),
    parking({ missing, different }) {
      reportAll('queue_missing', missing)
      reportAll('queue_differs', different)
    },
    durable: (partition, finding) => report('durable_differs', nameOf(partition), finding),
    missing: (partition, isMissing) =>
      report(
        'durable_missing',
        nameOf(partition),
        isMissing
          ? {
              detail:
                `The durable ${nameOf(partition)} of the stream ${stream} does not exist. ` +
                (stream === mqttStream
                  ? 'NATS acknowledges the messages of its partition to the devices, and does not store them'
                  : 'The messages of its partition are not taken'),
              act: `Run: ${addCommand(options, partition)}. Or set provision: true.`,
            }
          : null,
      ),
    isMissingDurable: (error) => apiCode(error) === notFound.consumer,
    created(partition, wasThere) {
      // The account sends no message to this partition yet, so none was lost.
      if (mapped !== null && partition >= mapped) return
      const since = wasThere ? 'It was deleted while the gateway ran' : 'Devices had published before'
      const what =
        stream === mqttStream
          ? `${since}: NATS has acknowledged what came in this partition meanwhile, and stored none of it`
          : `${since}. It begins with the first message that the stream has`
      found.happened(
        'durable_created',
        nameOf(partition),
        {
          clientId,
          detail: `The durable ${nameOf(partition)} was missing and was created. ${what}`,
          act:
            'Nothing more is lost from now on. Find out why it was missing: it was deleted, or devices published before ' +
            'the first start of a gateway. It is shown for an hour.',
        },
        createdForMs,
      )
    },
    parkingCreated(queue) {
      const lost =
        queue === 'parked'
          ? 'The payloads and messages that were parked in it are lost, unless there is a backup of the stream'
          : 'The copies of dead letters in it are lost; the dead letters themselves are still in their gateways'
      found.happened('custody_deleted', queue, {
        clientId,
        detail: `The stream ${parkingName(options, queue)} was deleted while the gateway ran, and was created again. ${lost}`,
        act: 'Find out who deleted it, and take that right away. It is shown for a day.',
      })
    },
    mapping({ state, finding, mapped: number }) {
      mapped = number
      report('mapping_differs', clientId, state === 'differs' ? finding : null)
      report('mapping_behind', clientId, state === 'behind' ? finding : null)
    },
    mapped: () => mapped,
    left: (finding) => report('partition_left', clientId, finding),
    mixed: (partition, finding) => report('partition_mixed', nameOf(partition), finding),
    nameTaken: (isTaken) =>
      report(
        'member_twice',
        clientId,
        isTaken
          ? {
              detail: `Another gateway takes part as ${clientId}. This one takes no messages`,
              act: 'Give each gateway its own `member`.',
            }
          : null,
      ),
    otherNumber: (other) =>
      report(
        'partitions_differ',
        clientId,
        other === null
          ? null
          : {
              detail:
                `The gateway ${other.member} shares ${other.partitions} partitions, and this one has ` +
                `partitions: ${options.partitions}. This one takes no messages`,
              act:
                'Give all gateways the same `durables.partitions`, the number in `mappings` of the account. This one ' +
                'takes part when no gateway with the other number runs.',
            },
      ),
    failed(error) {
      failingSinceMs ??= clock.monotonic()
      const { reason, detail, act } = natsFault(error, options)
      const isDenied = reason === 'permission_denied'
      if (!isDenied && clock.monotonic() - failingSinceMs < failingAfterMs) return
      report('not_ready', clientId, { detail, act })
    },
    works() {
      failingSinceMs = null
      report('not_ready', clientId, null)
    },
    refusedMessage: ({ reason, detail }) =>
      found.happened(reason === 'OVERSIZED' ? 'oversized' : 'bad_topic', clientId, {
        clientId,
        detail,
        act:
          reason === 'OVERSIZED'
            ? 'Raise max_message_bytes of the bridge if such messages are meant for the gateway, then requeue the dead ' +
              'letters (OVERSIZED). It is shown for a day.'
            : 'Look for the client that publishes there: MQTT does not allow such a topic. The message is a dead letter ' +
              '(BAD_TOPIC). It is shown for a day.',
      }),
    found,
  }
}
